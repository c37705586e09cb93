metadata description = 'Virtual network and private name zones, for private networking.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the virtual network.')
param networkName string

@description('Address range of the network, a /24 or larger. The environment takes the first 128 addresses, private endpoints the next 128.')
param addressPrefix string

resource network 'Microsoft.Network/virtualNetworks@2025-09-01' = {
  name: networkName
  location: location
  tags: tags
  properties: {
    addressSpace: {
      addressPrefixes: [addressPrefix]
    }
    subnets: [
      {
        name: 'environment'
        properties: {
          addressPrefix: cidrSubnet(addressPrefix, 25, 0)
          delegations: [
            {
              name: 'container-apps'
              properties: {
                serviceName: 'Microsoft.App/environments'
              }
            }
          ]
        }
      }
      {
        name: 'endpoints'
        properties: {
          addressPrefix: cidrSubnet(addressPrefix, 25, 1)
        }
      }
    ]
  }

  resource environmentSubnet 'subnets' existing = {
    name: 'environment'
  }

  resource endpointSubnet 'subnets' existing = {
    name: 'endpoints'
  }
}

var zoneNames = [
  'privatelink.servicebus.windows.net'
  'privatelink.documents.azure.com'
  'privatelink${environment().suffixes.acrLoginServer}'
]

resource zones 'Microsoft.Network/privateDnsZones@2024-06-01' = [
  for zoneName in zoneNames: {
    name: zoneName
    location: 'global'
    tags: tags
  }
]

resource links 'Microsoft.Network/privateDnsZones/virtualNetworkLinks@2024-06-01' = [
  for (zoneName, i) in zoneNames: {
    parent: zones[i]
    name: networkName
    location: 'global'
    tags: tags
    properties: {
      registrationEnabled: false
      virtualNetwork: {
        id: network.id
      }
    }
  }
]

@description('Resource id of the subnet of the Container Apps environment.')
output environmentSubnetId string = network::environmentSubnet.id

@description('Resource id of the subnet of the private endpoints.')
output endpointSubnetId string = network::endpointSubnet.id

@description('Resource id of the name zone of Service Bus.')
output serviceBusZoneId string = zones[0].id

@description('Resource id of the name zone of Cosmos DB.')
output cosmosZoneId string = zones[1].id

@description('Resource id of the name zone of the registry.')
output registryZoneId string = zones[2].id
