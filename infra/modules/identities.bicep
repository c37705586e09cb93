metadata description = 'Two identities: one for the code, one for the platform that runs it.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the identity that the code uses.')
param workerIdentityName string

@description('Name of the identity that pulls the image and reads the length of the queue.')
param platformIdentityName string

resource worker 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: workerIdentityName
  location: location
  tags: tags
}

// The scaler asks the management interface of Service Bus, which takes more than the right to receive. Were it the
// worker's own identity, a fault in the code could change the queue.
resource platform 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' = {
  name: platformIdentityName
  location: location
  tags: tags
}

@description('Object id of the worker identity.')
output workerPrincipalId string = worker.properties.principalId

@description('Client id of the worker identity, by which the code asks for its token.')
output workerClientId string = worker.properties.clientId

@description('Object id of the platform identity.')
output platformPrincipalId string = platform.properties.principalId
