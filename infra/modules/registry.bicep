metadata description = 'Container registry that knows identities only.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the registry.')
param registryName string

@description('Premium is needed for a private endpoint.')
@allowed(['Basic', 'Standard', 'Premium'])
param sku string

@description('Whether images can be pushed and pulled from the internet. Only Premium can say Disabled.')
@allowed(['Enabled', 'Disabled'])
param publicNetworkAccess string

@description('Object id of the platform identity: may pull.')
param platformPrincipalId string

var acrPullRoleId = '7f951dda-4ed3-4680-a7ca-43fe172d538d'

resource registry 'Microsoft.ContainerRegistry/registries@2025-11-01' = {
  name: registryName
  location: location
  tags: tags
  sku: {
    name: sku
  }
  properties: {
    adminUserEnabled: false
    anonymousPullEnabled: false
    publicNetworkAccess: publicNetworkAccess
  }
}

resource platformPulls 'Microsoft.Authorization/roleAssignments@2022-04-01' = {
  name: guid(registry.id, platformPrincipalId, acrPullRoleId)
  scope: registry
  properties: {
    principalId: platformPrincipalId
    principalType: 'ServicePrincipal'
    roleDefinitionId: subscriptionResourceId('Microsoft.Authorization/roleDefinitions', acrPullRoleId)
  }
}

@description('Resource id of the registry.')
output registryId string = registry.id

@description('Host name of the registry.')
output loginServer string = registry.properties.loginServer
