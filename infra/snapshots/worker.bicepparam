using '../worker.bicep'

// What worker.bicep deploys by default.
param environmentName = 'standard'
param location = 'westeurope'
param image = 'registry.example/orderworker:1.0.0'
param workerClientId = '33333333-3333-3333-3333-333333333333'
param serviceBusFqdn = 'sb-example.servicebus.windows.net'
param cosmosEndpoint = 'https://cosmos-example.documents.azure.com:443/'
