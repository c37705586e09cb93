using '../main.bicep'

// The telemetry agent, the fallbacks for roles, an operator who sends too, and another program than this repository's.
param programName = 'payments'
param queueName = 'payments'
param databaseName = 'ledger'
param containerName = 'payments'
param environmentName = 'telemetry'
param location = 'westeurope'
param telemetryAgent = true
param cosmosCapacity = 'free'
param cosmosBuiltInDataRole = true
param scalerRoleScope = 'namespace'
param operatorPrincipalId = '11111111-1111-1111-1111-aaaaaaaaaaaa'
param producerPrincipalIds = [
  '11111111-1111-1111-1111-AAAAAAAAAAAA'
  '22222222-2222-2222-2222-222222222222'
  '22222222-2222-2222-2222-222222222222'
]
