using '../main.bicep'

// What main.bicep deploys by default, with every value pinned that would change from day to day or place to place.
param environmentName = 'standard'
param location = 'westeurope'
