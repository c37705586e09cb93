metadata description = 'Private endpoint of one service, with its name in the zone.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the endpoint.')
param endpointName string

@description('Resource id of the service.')
param serviceId string

@description('Part of the service that the endpoint reaches, such as namespace, Sql or registry.')
param groupId string

@description('Resource id of the subnet.')
param subnetId string

@description('Resource id of the private name zone.')
param zoneId string

resource endpoint 'Microsoft.Network/privateEndpoints@2025-09-01' = {
  name: endpointName
  location: location
  tags: tags
  properties: {
    subnet: {
      id: subnetId
    }
    privateLinkServiceConnections: [
      {
        name: endpointName
        properties: {
          privateLinkServiceId: serviceId
          groupIds: [groupId]
        }
      }
    ]
  }
}

resource zoneGroup 'Microsoft.Network/privateEndpoints/privateDnsZoneGroups@2025-09-01' = {
  parent: endpoint
  name: 'default'
  properties: {
    privateDnsZoneConfigs: [
      {
        name: groupId
        properties: {
          privateDnsZoneId: zoneId
        }
      }
    ]
  }
}
