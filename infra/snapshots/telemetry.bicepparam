using '../main.bicep'

// The telemetry agent, and the fallbacks for roles.
param environmentName = 'telemetry'
param location = 'westeurope'
param telemetryAgent = true
param cosmosCapacity = 'free'
param cosmosBuiltInDataRole = true
param scalerRoleScope = 'namespace'
