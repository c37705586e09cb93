metadata description = 'Cosmos DB account with one write region, the container of the orders, and who may do what on it.'

@description('Region, and the only one that accepts writes.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the account.')
param accountName string

@description('Name of the database.')
param databaseName string

@description('Name of the container.')
param containerName string

@description('serverless: pay per request, one region. autoscale: reserved throughput. free: the free tier, one account in a subscription. It cannot be changed between serverless and the others later.')
@allowed(['serverless', 'autoscale', 'free'])
param capacity string

@description('Highest throughput in request units per second; not for serverless. At least 1000.')
@minValue(1000)
param maxThroughput int

@description('Whether the account is spread over availability zones.')
param zoneRedundant bool

@description('Further regions, for reading and for disaster; not for serverless.')
param readRegions string[]

@description('Whether clients may connect from the internet.')
@allowed(['Enabled', 'Disabled'])
param publicNetworkAccess string

@description('Gives the built-in contributor role instead of the narrow one, for when a transactional batch is refused with 403.')
param builtInDataRole bool

@description('Object id of the worker identity: may create and read items, never replace or delete.')
param workerPrincipalId string

@description('Object id of a person who reviews dead letters. Empty for none.')
param operatorPrincipalId string

@description('Whether the account is locked against deletion.')
param deleteLock bool

@description('Resource id of the workspace that receives diagnostics.')
param workspaceId string

var limits = loadJsonContent('../limits.json')
var serverless = capacity == 'serverless'
var furtherRegions = serverless && !empty(readRegions)
  ? fail('A serverless account has one region: leave readRegions empty, or choose autoscale.')
  : readRegions

resource account 'Microsoft.DocumentDB/databaseAccounts@2026-03-15' = {
  name: accountName
  location: location
  tags: tags
  kind: 'GlobalDocumentDB'
  properties: {
    databaseAccountOfferType: 'Standard'
    // One write region makes a create decide: only then is 409 final. With several, two regions each answer
    // 201 to the same id, and one of the two documents is thrown away afterwards.
    enableMultipleWriteLocations: false
    // A failover that nobody decided can lose the newest writes, whose messages have left the queue already. While the
    // region is away the messages wait on the queue instead.
    enableAutomaticFailover: false
    locations: concat(
      [
        {
          locationName: location
          failoverPriority: 0
          isZoneRedundant: zoneRedundant
        }
      ],
      map(furtherRegions, (region, i) => {
        locationName: region
        failoverPriority: i + 1
        isZoneRedundant: zoneRedundant
      })
    )
    consistencyPolicy: {
      defaultConsistencyLevel: 'Session'
    }
    capabilities: serverless
      ? [
          {
            name: 'EnableServerless'
          }
        ]
      : []
    enableFreeTier: capacity == 'free'
    backupPolicy: {
      type: 'Continuous'
      continuousModeProperties: {
        tier: 'Continuous7Days'
      }
    }
    disableLocalAuth: true
    disableKeyBasedMetadataWriteAccess: true
    minimalTlsVersion: 'Tls12'
    publicNetworkAccess: publicNetworkAccess
    networkAclBypass: 'None'
  }
}

resource database 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases@2026-03-15' = {
  parent: account
  name: databaseName
  location: location
  tags: tags
  properties: {
    resource: {
      id: databaseName
    }
  }
}

resource container 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers@2026-03-15' = {
  parent: database
  name: containerName
  location: location
  tags: tags
  properties: {
    resource: {
      id: containerName
      // The partition key is for ever. Version 2 hashes the whole value; version 1 only its first 101 bytes.
      partitionKey: {
        kind: 'Hash'
        paths: [limits.store.partitionKeyPath]
        version: limits.store.partitionKeyVersion
      }
      // -1: nothing expires unless an item says so. Orders never do; an inbox record may. Without the property an
      // item's own time to live would be ignored.
      defaultTtl: limits.store.defaultTimeToLiveSeconds
      // The worker reads by id only, and an index term costs on every write. The one path that it searches by is in no other
      // document than the messages that wait to be sent. The mode must not be none: time to live needs the index of _ts.
      indexingPolicy: {
        indexingMode: 'consistent'
        automatic: true
        includedPaths: [
          {
            path: '/outbox/unsent/?'
          }
        ]
        excludedPaths: [
          {
            path: '/*'
          }
        ]
      }
      conflictResolutionPolicy: {
        mode: 'LastWriterWins'
        conflictResolutionPath: '/_ts'
      }
    }
    options: serverless
      ? {}
      : {
          autoscaleSettings: {
            maxThroughput: capacity == 'free' ? 1000 : maxThroughput
          }
        }
  }
}

var containerScope = '${account.id}/dbs/${databaseName}/colls/${containerName}'
var items = 'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items'

// Azure locks the account for each of these writes and answers 412 to the next: everything below forms one chain.
// The client reads the account document when it starts, which a role on the container alone does not allow.
resource metadataReader 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2026-03-15' = {
  parent: account
  name: guid(account.id, 'orderworker-metadata-reader')
  properties: {
    roleName: 'orderworker metadata reader'
    type: 'CustomRole'
    assignableScopes: [account.id]
    permissions: [
      {
        dataActions: ['Microsoft.DocumentDB/databaseAccounts/readMetadata']
      }
    ]
  }
  dependsOn: [container]
}

// No upsert, no replace, no delete: what is stored stays as it was written, whatever the code does.
resource orderWriter 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2026-03-15' = {
  parent: account
  name: guid(account.id, 'orderworker-writer')
  properties: {
    roleName: 'orderworker writer'
    type: 'CustomRole'
    assignableScopes: [account.id]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
          '${items}/create'
          '${items}/read'
        ]
      }
    ]
  }
  dependsOn: [metadataReader]
}

// A query takes two actions: the query itself and the change feed, from which the client reads.
resource orderReviewer 'Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions@2026-03-15' = {
  parent: account
  name: guid(account.id, 'orderworker-reviewer')
  properties: {
    roleName: 'orderworker reviewer'
    type: 'CustomRole'
    assignableScopes: [account.id]
    permissions: [
      {
        dataActions: [
          'Microsoft.DocumentDB/databaseAccounts/readMetadata'
          '${items}/create'
          '${items}/read'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/executeQuery'
          'Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/readChangeFeed'
        ]
      }
    ]
  }
  dependsOn: [orderWriter]
}

var builtInContributorId = '${account.id}/sqlRoleDefinitions/00000000-0000-0000-0000-000000000002'

resource workerReadsMetadata 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2026-03-15' = {
  parent: account
  name: guid(account.id, workerPrincipalId, metadataReader.id)
  properties: {
    principalId: workerPrincipalId
    roleDefinitionId: metadataReader.id
    scope: account.id
  }
  dependsOn: [orderReviewer]
}

resource workerWrites 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2026-03-15' = {
  parent: account
  name: guid(containerScope, workerPrincipalId, builtInDataRole ? builtInContributorId : orderWriter.id)
  properties: {
    principalId: workerPrincipalId
    roleDefinitionId: builtInDataRole ? builtInContributorId : orderWriter.id
    scope: containerScope
  }
  dependsOn: [workerReadsMetadata]
}

resource operatorReadsMetadata 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2026-03-15' = if (!empty(operatorPrincipalId)) {
  parent: account
  name: guid(account.id, operatorPrincipalId, metadataReader.id)
  properties: {
    principalId: operatorPrincipalId
    roleDefinitionId: metadataReader.id
    scope: account.id
  }
  dependsOn: [workerWrites]
}

resource operatorReviews 'Microsoft.DocumentDB/databaseAccounts/sqlRoleAssignments@2026-03-15' = if (!empty(operatorPrincipalId)) {
  parent: account
  name: guid(containerScope, operatorPrincipalId, orderReviewer.id)
  properties: {
    principalId: operatorPrincipalId
    roleDefinitionId: orderReviewer.id
    scope: containerScope
  }
  dependsOn: [operatorReadsMetadata]
}

// What is lost with it cannot be made again. The lock refuses deletion only; deployments go on.
resource lock 'Microsoft.Authorization/locks@2020-05-01' = if (deleteLock) {
  name: 'no-deletion'
  scope: account
  properties: {
    level: 'CanNotDelete'
    notes: 'All that the worker stored is deleted with it.'
  }
}

#disable-next-line use-recent-api-versions // the newest version of this type is a preview; the only stable one lacks dedicated tables
resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'workspace'
  scope: account
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated'
    // DataPlaneRequests would log every operation and cost more than the orders themselves: switch it on for an audit.
    logs: [
      {
        category: 'ControlPlaneRequests'
        enabled: true
      }
      {
        category: 'PartitionKeyStatistics'
        enabled: true
      }
    ]
  }
}

@description('Resource id of the account.')
output accountId string = account.id

@description('Endpoint of the account.')
output endpoint string = account.properties.documentEndpoint
