metadata description = 'Resource group and everything in it. The container app follows with worker.bicep, once there is an image.'

targetScope = 'subscription'

import { namesFor } from 'names.bicep'

@description('Name of the program; part of resource names and of alerts, and the service name of its telemetry. Letters, digits and single dashes between them.')
@minLength(1)
@maxLength(20)
param programName string = 'orderworker'

@description('Name of the environment, such as dev or prod; part of resource names. Letters, digits and single dashes between them.')
@minLength(1)
@maxLength(20)
param environmentName string = 'dev'

@description('Region of all resources.')
param location string = deployment().location

@description('Further tags of every resource.')
param tags object = {}

@description('Queue that the program reads.')
param queueName string = 'orders'

@description('Cosmos DB database.')
param databaseName string = 'orders'

@description('Cosmos DB container.')
param containerName string = 'orders'

@description('Tier of Service Bus. Private networking makes it Premium.')
@allowed(['Standard', 'Premium'])
param serviceBusSku string = 'Standard'

@description('Where the scaler gets its role: on the queue, or on the namespace when it reports that it is not authorized.')
@allowed(['queue', 'namespace'])
param scalerRoleScope string = 'queue'

@description('Queues of the namespace that the worker may send messages to. They exist already, so that a first deployment has none.')
param destinationQueues string[] = []

@description('Topics of the namespace that the worker may send messages to. They exist already, so that a first deployment has none.')
param destinationTopics string[] = []

@description('Object ids of service principals that send messages.')
param producerPrincipalIds string[] = []

@description('Object id of a person or group that sends by hand and reviews dead letters. Empty for none.')
param operatorPrincipalId string = ''

@description('Kind of the operator.')
@allowed(['User', 'Group', 'ServicePrincipal'])
param operatorPrincipalType string = 'User'

@description('serverless: pay per request, one region. autoscale: reserved throughput. free: the free tier, one account in a subscription.')
@allowed(['serverless', 'autoscale', 'free'])
param cosmosCapacity string = 'serverless'

@description('Highest throughput of autoscale in request units per second.')
@minValue(1000)
param cosmosMaxThroughput int = 1000

@description('Further regions of Cosmos DB, for reading and for disaster; not for serverless.')
param cosmosReadRegions string[] = []

@description('Gives the worker the built-in contributor role on the container, for when a transactional batch is refused with 403.')
param cosmosBuiltInDataRole bool = false

@description('Whether Cosmos DB and the replicas are spread over availability zones. Replicas need private networking for it.')
param zoneRedundant bool = false

@description('Tier of the registry. Private networking makes it Premium.')
@allowed(['Basic', 'Standard', 'Premium'])
param registrySku string = 'Standard'

@description('Whether images can be pushed from the internet. Off means that the build must run inside the network.')
param registryPublicAccess bool = true

@description('Puts everything into a virtual network with private endpoints. Needs the Premium tiers of Service Bus and registry.')
param privateNetworking bool = false

@description('Address range of the virtual network, a /24 or larger.')
param networkAddressPrefix string = '10.40.0.0/24'

@description('Puts a lock on the namespace and on the Cosmos DB account, so that nobody deletes messages or orders by accident. Takes a right that Contributor lacks: Microsoft.Authorization/locks/write.')
param deleteLocks bool = false

@description('Days that logs are kept.')
@minValue(30)
@maxValue(730)
param logRetentionDays int = 30

@description('Gigabytes of logs a day, after which the rest of the day is not kept. -1 for no limit.')
param logDailyQuotaGb int = 1

@description('Sends traces and logs to Application Insights through the agent of Container Apps, which is a preview and takes gRPC only.')
param telemetryAgent bool = false

@description('Addresses that alerts are sent to.')
param alertEmails string[] = []

@description('Waiting messages above which the backlog alert fires. 0 for what the replicas are meant to hold.')
@minValue(0)
param backlogMessages int = 0

@description('Monthly budget in the currency of the subscription. 0 for none.')
@minValue(0)
param monthlyBudget int = 0

@description('First day of the month in which the budget is made, such as 2026-01-01; needed with a budget. Keep it for good: a date in the past cannot be chosen anew, and that of a budget cannot be changed.')
param budgetStartDate string = ''

var names = namesFor(subscription().subscriptionId, programName, environmentName, location)

resource group 'Microsoft.Resources/resourceGroups@2025-04-01' = {
  name: names.resourceGroup
  location: location
  tags: union(tags, {
    'azd-env-name': environmentName
  })
}

module resources 'resources.bicep' = {
  scope: group
  params: {
    programName: programName
    environmentName: environmentName
    location: location
    tags: tags
    queueName: queueName
    databaseName: databaseName
    containerName: containerName
    serviceBusSku: serviceBusSku
    scalerRoleScope: scalerRoleScope
    producerPrincipalIds: producerPrincipalIds
    destinationQueues: destinationQueues
    destinationTopics: destinationTopics
    operatorPrincipalId: operatorPrincipalId
    operatorPrincipalType: operatorPrincipalType
    cosmosCapacity: cosmosCapacity
    cosmosMaxThroughput: cosmosMaxThroughput
    cosmosReadRegions: cosmosReadRegions
    cosmosBuiltInDataRole: cosmosBuiltInDataRole
    zoneRedundant: zoneRedundant
    registrySku: registrySku
    registryPublicAccess: registryPublicAccess
    privateNetworking: privateNetworking
    networkAddressPrefix: networkAddressPrefix
    deleteLocks: deleteLocks
    logRetentionDays: logRetentionDays
    logDailyQuotaGb: logDailyQuotaGb
    telemetryAgent: telemetryAgent
    alertEmails: alertEmails
    backlogMessages: backlogMessages
    monthlyBudget: monthlyBudget
    budgetStartDate: budgetStartDate
  }
}

@description('Host name of the Service Bus namespace.')
output SERVICEBUS_NAMESPACE_FQDN string = resources.outputs.SERVICEBUS_NAMESPACE_FQDN

@description('Queue that the worker reads.')
output SERVICEBUS_QUEUE string = resources.outputs.SERVICEBUS_QUEUE

@description('Endpoint of the Cosmos DB account.')
output COSMOS_ENDPOINT string = resources.outputs.COSMOS_ENDPOINT

@description('Cosmos DB database.')
output COSMOS_DATABASE string = resources.outputs.COSMOS_DATABASE

@description('Cosmos DB container.')
output COSMOS_CONTAINER string = resources.outputs.COSMOS_CONTAINER

@description('Lock duration of the queue.')
output WORKER_LOCK_DURATION string = resources.outputs.WORKER_LOCK_DURATION

@description('Deliveries after which the queue dead-letters a message.')
output WORKER_MAX_DELIVERY_COUNT string = resources.outputs.WORKER_MAX_DELIVERY_COUNT

@description('Time to live of messages on the queue.')
output WORKER_MESSAGE_TTL string = resources.outputs.WORKER_MESSAGE_TTL

@description('How long the queue remembers message ids of senders.')
output WORKER_DUPLICATE_DETECTION_WINDOW string = resources.outputs.WORKER_DUPLICATE_DETECTION_WINDOW

@description('Host name of the registry; azd pushes there.')
output AZURE_CONTAINER_REGISTRY_ENDPOINT string = resources.outputs.AZURE_CONTAINER_REGISTRY_ENDPOINT

@description('Resource group of the environment.')
output AZURE_RESOURCE_GROUP string = group.name

@description('Client id of the identity that the code uses.')
output AZURE_WORKER_CLIENT_ID string = resources.outputs.AZURE_WORKER_CLIENT_ID

@description('Name of the container app that worker.bicep deploys.')
output AZURE_CONTAINER_APP_NAME string = resources.outputs.AZURE_CONTAINER_APP_NAME

@description('Region of all resources.')
output AZURE_LOCATION string = resources.outputs.AZURE_LOCATION

@description('Name of the environment.')
output AZURE_ENV_NAME string = resources.outputs.AZURE_ENV_NAME
