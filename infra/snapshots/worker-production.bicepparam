using '../worker.bicep'

// Every optional setting at once, and another program than the one of this repository.
param programName = 'payments'
param environmentName = 'production'
param queueName = 'payments'
param databaseName = 'ledger'
param containerName = 'payments'
param location = 'westeurope'
param tags = {
  team: 'orders'
}
param image = 'registry.example/payments:1.0.0'
param workerClientId = '33333333-3333-3333-3333-333333333333'
param serviceBusFqdn = 'sb-example.servicebus.windows.net'
param cosmosEndpoint = 'https://cosmos-example.documents.azure.com:443/'
param size = 'large'
param concurrency = 64
param minReplicas = 1
param maxReplicas = 30
param messagesPerReplica = 1000
param consumer = 'billing'
param inboxRecord = true
param destinations = ['stock', 'order-events']
param logLevel = 'debug'
param preflight = true
param otlpEndpoint = 'https://collector.example:4318'
param otlpHeadersSecretUri = 'https://kv-example.vault.azure.net/secrets/otlp-headers'
