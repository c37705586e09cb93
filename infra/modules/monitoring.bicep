metadata description = 'Workspace for logs, and the people whom alerts notify.'

@description('Region.')
param location string

@description('Tags of every resource.')
param tags object

@description('Name of the Log Analytics workspace.')
param workspaceName string

@description('Name of the Application Insights resource.')
param applicationInsightsName string

@description('Whether to make an Application Insights resource for the telemetry agent.')
param telemetryAgent bool

@description('Name of the action group.')
param actionGroupName string

@description('Name of the action group in short messages.')
@maxLength(12)
param actionGroupShortName string

@description('Addresses that alerts are sent to. Empty: alerts are seen in the portal only.')
param alertEmails string[]

@description('Days that logs are kept.')
@minValue(30)
@maxValue(730)
param logRetentionDays int

@description('Gigabytes of logs a day, after which the rest of the day is not kept. -1 for no limit; alerts on logs are blind once it is reached.')
param logDailyQuotaGb int

resource workspace 'Microsoft.OperationalInsights/workspaces@2026-03-01' = {
  name: workspaceName
  location: location
  tags: tags
  properties: {
    sku: {
      name: 'PerGB2018'
    }
    retentionInDays: logRetentionDays
    workspaceCapping: {
      dailyQuotaGb: logDailyQuotaGb
    }
    features: {
      disableLocalAuth: true
      enableLogAccessUsingOnlyResourcePermissions: true
    }
  }
}

resource applicationInsights 'Microsoft.Insights/components@2020-02-02' = if (telemetryAgent) {
  name: applicationInsightsName
  location: location
  tags: tags
  kind: 'other'
  properties: {
    Application_Type: 'other'
    WorkspaceResourceId: workspace.id
    // The agent of Container Apps cannot sign in with an identity.
    DisableLocalAuth: false
  }
}

resource actionGroup 'Microsoft.Insights/actionGroups@2023-01-01' = {
  name: actionGroupName
  location: 'global'
  tags: tags
  properties: {
    groupShortName: actionGroupShortName
    enabled: true
    emailReceivers: map(alertEmails, (address, i) => {
      name: 'email-${i}'
      emailAddress: address
      useCommonAlertSchema: true
    })
  }
}

@description('Resource id of the workspace.')
output workspaceId string = workspace.id

@description('Resource id of the action group.')
output actionGroupId string = actionGroup.id
