using '../main.bicep'

// What a production environment may look like: private, reserved throughput, zones, alerts and a budget.
param environmentName = 'production'
param location = 'westeurope'
param tags = {
  team: 'orders'
}
param operatorPrincipalId = '11111111-1111-1111-1111-111111111111'
param operatorPrincipalType = 'Group'
param destinationQueues = ['stock']
param destinationTopics = ['order-events']
param producerPrincipalIds = ['22222222-2222-2222-2222-222222222222']
param cosmosCapacity = 'autoscale'
param cosmosMaxThroughput = 4000
param cosmosReadRegions = ['northeurope']
param zoneRedundant = true
param privateNetworking = true
param registryPublicAccess = false
param deleteLocks = true
param logRetentionDays = 90
param logDailyQuotaGb = 5
param alertEmails = ['orders-on-call@example.com']
param monthlyBudget = 1500
param budgetStartDate = '2026-01-01'
