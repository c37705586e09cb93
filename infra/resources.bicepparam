using './resources.bicep'

// For a deployment into a resource group that exists.
//
// Every value has a default, so that plain az needs none of these variables; azd sets environment, location and operator
// by itself. A pipeline sets AZURE_PRINCIPAL_TYPE to ServicePrincipal. main.bicepparam says the same.
param programName = readEnvironmentVariable('ORDERWORKER_PROGRAM', 'orderworker')
param environmentName = readEnvironmentVariable('AZURE_ENV_NAME', 'dev')
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
param operatorPrincipalId = readEnvironmentVariable('AZURE_PRINCIPAL_ID', '')
param operatorPrincipalType = readEnvironmentVariable('AZURE_PRINCIPAL_TYPE', 'User')

param producerPrincipalIds = filter(
  map(split(readEnvironmentVariable('ORDERWORKER_PRODUCERS', ''), ','), each => trim(each)),
  each => !empty(each)
)
param destinationQueues = filter(
  map(split(readEnvironmentVariable('ORDERWORKER_DESTINATION_QUEUES', ''), ','), each => trim(each)),
  each => !empty(each)
)
param destinationTopics = filter(
  map(split(readEnvironmentVariable('ORDERWORKER_DESTINATION_TOPICS', ''), ','), each => trim(each)),
  each => !empty(each)
)
param queueName = readEnvironmentVariable('SERVICEBUS_QUEUE', 'orders')
param databaseName = readEnvironmentVariable('COSMOS_DATABASE', 'orders')
param containerName = readEnvironmentVariable('COSMOS_CONTAINER', 'orders')
param serviceBusSku = readEnvironmentVariable('ORDERWORKER_SERVICEBUS_SKU', 'Standard')
param scalerRoleScope = readEnvironmentVariable('ORDERWORKER_SCALER_ROLE_SCOPE', 'queue')
param cosmosCapacity = readEnvironmentVariable('ORDERWORKER_COSMOS_CAPACITY', 'serverless')
param cosmosMaxThroughput = int(readEnvironmentVariable('ORDERWORKER_COSMOS_MAX_THROUGHPUT', '1000'))
param cosmosBuiltInDataRole = bool(readEnvironmentVariable('ORDERWORKER_COSMOS_BUILT_IN_ROLE', 'false'))
param zoneRedundant = bool(readEnvironmentVariable('ORDERWORKER_ZONE_REDUNDANT', 'false'))
param registrySku = readEnvironmentVariable('ORDERWORKER_REGISTRY_SKU', 'Standard')
param registryPublicAccess = bool(readEnvironmentVariable('ORDERWORKER_REGISTRY_PUBLIC', 'true'))
param privateNetworking = bool(readEnvironmentVariable('ORDERWORKER_PRIVATE_NETWORKING', 'false'))
param deleteLocks = bool(readEnvironmentVariable('ORDERWORKER_DELETE_LOCKS', 'false'))
param telemetryAgent = bool(readEnvironmentVariable('ORDERWORKER_TELEMETRY_AGENT', 'false'))
param alertEmails = filter(
  map(split(readEnvironmentVariable('ORDERWORKER_ALERT_EMAILS', ''), ','), each => trim(each)),
  each => !empty(each)
)
param backlogMessages = int(readEnvironmentVariable('ORDERWORKER_BACKLOG_MESSAGES', '0'))
param monthlyBudget = int(readEnvironmentVariable('ORDERWORKER_MONTHLY_BUDGET', '0'))
param budgetStartDate = readEnvironmentVariable('ORDERWORKER_BUDGET_START', '')
