metadata description = 'Service Bus namespace, the queue, and who may do what on it.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the namespace.')
param namespaceName string

@description('Name of the queue.')
param queueName string

@description('Standard has all that the worker needs. Premium adds private endpoints and messages above 256 KB.')
@allowed(['Standard', 'Premium'])
param sku string

@description('Whether clients may connect from the internet. Only Premium can say Disabled.')
@allowed(['Enabled', 'Disabled'])
param publicNetworkAccess string

@description('Object id of the worker identity: may receive.')
param workerPrincipalId string

@description('Object id of the platform identity: may read the length of the queue.')
param platformPrincipalId string

@description('Where the platform identity gets its role. The namespace is the fallback for when the scaler reports that it is not authorized.')
@allowed(['queue', 'namespace'])
param scalerRoleScope string

@description('Queues of the namespace that the worker sends messages to. They exist already.')
param destinationQueues string[]

@description('Topics of the namespace that the worker sends messages to. They exist already.')
param destinationTopics string[]

@description('Object ids of service principals that send messages.')
param producerPrincipalIds string[]

@description('Object id of a person who reviews dead letters and sends by hand. Empty for none.')
param operatorPrincipalId string

@description('Kind of the operator.')
@allowed(['User', 'Group', 'ServicePrincipal'])
param operatorPrincipalType string

@description('Whether the namespace is locked against deletion.')
param deleteLock bool

@description('Resource id of the workspace that receives diagnostics.')
param workspaceId string

var limits = loadJsonContent('../limits.json')

var roleIds = {
  receiver: '4f6d3b9b-027b-4f4c-9142-0e5a2a2247e0' // Azure Service Bus Data Receiver
  sender: '69a216fc-b8fb-44d8-bc22-1f3c2cd27a39' // Azure Service Bus Data Sender
  owner: '090c5cfd-751d-490a-894a-3ce6f1109419' // Azure Service Bus Data Owner
}

resource namespace 'Microsoft.ServiceBus/namespaces@2026-01-01' = {
  name: namespaceName
  location: location
  tags: tags
  sku: {
    name: sku
    tier: sku
    capacity: sku == 'Premium' ? 1 : null
  }
  properties: {
    disableLocalAuth: true
    minimumTlsVersion: '1.2'
    publicNetworkAccess: publicNetworkAccess
  }
}

resource queue 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' = {
  parent: namespace
  name: queueName
  properties: {
    lockDuration: limits.queue.lockDuration.iso8601
    maxDeliveryCount: limits.queue.maxDeliveryCount
    defaultMessageTimeToLive: limits.queue.messageTimeToLive.iso8601
    deadLetteringOnMessageExpiration: true
    // Sessions, partitioning and duplicate detection are decided when a queue is made; a change means another queue.
    // Detection covers the sender's retries within the window and nothing else: redelivery is the worker's business.
    requiresDuplicateDetection: true
    duplicateDetectionHistoryTimeWindow: limits.queue.duplicateDetectionWindow.iso8601
    requiresSession: false
    enablePartitioning: false
    // Dead letters count too. A full queue refuses its senders.
    maxSizeInMegabytes: limits.queue.maxSizeMegabytes
  }
}

resource workerReceives 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(queue.id, workerPrincipalId, roleIds.receiver)
  scope: queue
  properties: {
    principalId: workerPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds.receiver)
  }
}

// The right to send is one for each destination, so that the worker can send nowhere else.
resource outgoingQueues 'Microsoft.ServiceBus/namespaces/queues@2026-01-01' existing = [
  for name in destinationQueues: {
    parent: namespace
    name: name
  }
]

resource workerSendsToQueues 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (name, i) in destinationQueues: {
    name: guid(namespace.id, toLower(name), workerPrincipalId, roleIds.sender)
    scope: outgoingQueues[i]
    properties: {
      principalId: workerPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds.sender)
    }
  }
]

resource outgoingTopics 'Microsoft.ServiceBus/namespaces/topics@2026-01-01' existing = [
  for name in destinationTopics: {
    parent: namespace
    name: name
  }
]

resource workerSendsToTopics 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for (name, i) in destinationTopics: {
    name: guid(namespace.id, 'topic', toLower(name), workerPrincipalId, roleIds.sender)
    scope: outgoingTopics[i]
    properties: {
      principalId: workerPrincipalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds.sender)
    }
  }
]

resource platformReadsQueue 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (scalerRoleScope == 'queue') {
  name: guid(queue.id, platformPrincipalId, roleIds.owner)
  scope: queue
  properties: {
    principalId: platformPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds.owner)
  }
}

resource platformReadsNamespace 'Microsoft.Authorization/roleAssignments@2022-04-01' = if (scalerRoleScope == 'namespace') {
  name: guid(namespace.id, platformPrincipalId, roleIds.owner)
  scope: namespace
  properties: {
    principalId: platformPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds.owner)
  }
}

// An assignment is named by its principal: one that is listed twice, or is the operator as well, would be the
// same resource twice, which is refused.
var producers = filter(union(map(producerPrincipalIds, id => toLower(id)), []), id => id != toLower(operatorPrincipalId))

resource producersSend 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for principalId in producers: {
    name: guid(queue.id, principalId, roleIds.sender)
    scope: queue
    properties: {
      principalId: principalId
      principalType: 'ServicePrincipal'
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleIds.sender)
    }
  }
]

var operatorRoleIds = empty(operatorPrincipalId) ? [] : [roleIds.receiver, roleIds.sender]

resource operatorReviews 'Microsoft.Authorization/roleAssignments@2022-04-01' = [
  for roleId in operatorRoleIds: {
    name: guid(queue.id, operatorPrincipalId, roleId)
    scope: queue
    properties: {
      principalId: operatorPrincipalId
      principalType: operatorPrincipalType
      roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', roleId)
    }
  }
]

// What is lost with it cannot be made again. The lock refuses deletion only; deployments go on.
resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (deleteLock) {
  name: 'no-deletion'
  scope: namespace
  properties: {
    level: 'CanNotDelete'
    notes: 'Messages that wait are deleted with it.'
  }
}

#disable-next-line use-recent-api-versions // the newest version of this type is a preview; the only stable one lacks categoryGroup
resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'workspace'
  scope: namespace
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated'
    logs: [
      {
        categoryGroup: 'allLogs'
        enabled: true
      }
    ]
  }
}

@description('Resource id of the namespace.')
output namespaceId string = namespace.id

@description('Host name of the namespace.')
output fullyQualifiedNamespace string = split(split(namespace.properties.serviceBusEndpoint, '//')[1], ':')[0]
