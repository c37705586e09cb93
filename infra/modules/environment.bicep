metadata description = 'Container Apps environment; logs go to the workspace without a shared key.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the environment.')
param managedEnvironmentName string

@description('Whether the environment is inside a virtual network and closed to the internet.')
param privateNetworking bool

@description('Subnet for private networking.')
param subnetId string

@description('Whether replicas are spread over availability zones. Needs a subnet; decided when the environment is made.')
param zoneRedundant bool

@description('Resource id of the workspace that receives logs.')
param workspaceId string

@description('Name of the Application Insights resource that the telemetry agent sends to. Empty: no agent.')
param applicationInsightsName string

var telemetryAgent = !empty(applicationInsightsName)

var commonProperties = {
  // Without a workload profile the environment is of the older kind, which lacks parts of the identity settings.
  workloadProfiles: [
    {
      name: 'Consumption'
      workloadProfileType: 'Consumption'
    }
  ]
  appLogsConfiguration: {
    destination: 'azure-monitor'
  }
  zoneRedundant: zoneRedundant
  vnetConfiguration: privateNetworking
    ? {
        infrastructureSubnetId: subnetId
        internal: true
      }
    : null
  publicNetworkAccess: privateNetworking ? 'Disabled' : 'Enabled'
}

resource managedEnvironment 'Microsoft.App/managedEnvironments@2026-01-01' = if (!telemetryAgent) {
  name: managedEnvironmentName
  location: location
  tags: tags
  properties: commonProperties
}

resource applicationInsights 'Microsoft.Insights/components@2020-02-02' existing = if (telemetryAgent) {
  name: applicationInsightsName
}

#disable-next-line use-recent-api-versions // only previews know the telemetry agent
resource managedEnvironmentWithAgent 'Microsoft.App/managedEnvironments@2025-10-02-preview' = if (telemetryAgent) {
  name: managedEnvironmentName
  location: location
  tags: tags
  properties: union(commonProperties, {
    appInsightsConfiguration: {
      connectionString: applicationInsights!.properties.ConnectionString
    }
    // Application Insights takes traces and logs from the agent, and no metrics.
    openTelemetryConfiguration: {
      tracesConfiguration: {
        destinations: ['appInsights']
      }
      logsConfiguration: {
        destinations: ['appInsights']
      }
    }
  })
}

#disable-next-line use-recent-api-versions // the newest version of this type is a preview; the only stable one lacks dedicated tables
resource diagnostics 'Microsoft.Insights/diagnosticSettings@2021-05-01-preview' = {
  name: 'workspace'
  scope: managedEnvironment
  properties: {
    workspaceId: workspaceId
    logAnalyticsDestinationType: 'Dedicated'
    logs: [
      {
        category: 'ContainerAppConsoleLogs'
        enabled: true
      }
      {
        category: 'ContainerAppSystemLogs'
        enabled: true
      }
    ]
  }
  dependsOn: [managedEnvironmentWithAgent]
}
