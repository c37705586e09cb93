metadata description = 'Alerts on the queue, the store and what the worker reports in its log.'

@description('Region of the rules on logs.')
param location string

@description('Tags of every resource.')
param tags object

@description('Resource id of the action group.')
param actionGroupId string

@description('Resource id of the workspace that holds the logs.')
param workspaceId string

@description('Resource id of the Service Bus namespace.')
param serviceBusId string

@description('Name of the queue.')
param queueName string

@description('Resource id of the Cosmos DB account.')
param cosmosId string

@description('Name of the container app, by which log lines are told apart.')
param appName string

@description('Name of the program, with which the names of the alerts begin.')
param programName string

@description('Size of the queue at which it refuses senders.')
param queueMegabytes int

@description('Waiting messages above which the backlog alert fires, once the queue has not been shorter for 15 minutes.')
param backlogMessages int

@description('A metric alert: it fires when every criterion holds over the window.')
type metricRule = {
  @description('Name of the rule.')
  name: string

  @description('What has happened, and where to look.')
  description: string

  @description('0 critical, 1 error, 2 warning, 3 information.')
  @minValue(0)
  @maxValue(4)
  severity: int

  @description('Resource that is watched.')
  scope: string

  @description('Length of the window.')
  window: string

  @description('What must hold, all at once.')
  criteria: metricCriterion[]
}

@description('One comparison of a metric.')
type metricCriterion = {
  @description('Kind of the resource.')
  namespace: 'Microsoft.ServiceBus/namespaces' | 'Microsoft.DocumentDB/databaseAccounts'

  @description('Name of the metric.')
  metric: string

  @description('How the window is summed up.')
  aggregation: 'Average' | 'Count' | 'Maximum' | 'Minimum' | 'Total'

  @description('Comparison with the threshold.')
  operator: 'GreaterThan' | 'LessThanOrEqual'

  @description('Number to compare with.')
  threshold: int

  @description('Dimension and the one value of it that counts.')
  dimension: { name: string, value: string }
}

@description('An alert on log lines: it fires when the query finds more rows than the threshold.')
type logRule = {
  @description('Name of the rule.')
  name: string

  @description('What has happened, and where to look.')
  description: string

  @description('0 critical, 1 error, 2 warning, 3 information.')
  @minValue(0)
  @maxValue(4)
  severity: int

  @description('Query; {app} stands for the name of the container app.')
  query: string

  @description('Length of the window.')
  window: string

  @description('Rows that are still in order.')
  @minValue(0)
  threshold: int

  @description('Whether the alert resolves itself when the rows are gone. One that does not is notified at most every ten minutes.')
  autoMitigate: bool
}

var onQueue = {
  name: 'EntityName'
  value: queueName
}

var metricRules metricRule[] = [
  {
    name: '${programName}-dead-letters'
    description: 'There are messages in the dead-letter queue. What to do with each: deadletter list.'
    severity: 2
    scope: serviceBusId
    window: 'PT15M'
    criteria: [
      {
        namespace: 'Microsoft.ServiceBus/namespaces'
        metric: 'DeadletteredMessages'
        aggregation: 'Average'
        operator: 'GreaterThan'
        threshold: 0
        dimension: onQueue
      }
    ]
  }
  {
    name: '${programName}-backlog'
    description: 'For 15 minutes more messages have been waiting than the replicas are meant to hold: they are handled late.'
    severity: 2
    scope: serviceBusId
    window: 'PT15M'
    criteria: [
      {
        namespace: 'Microsoft.ServiceBus/namespaces'
        metric: 'ActiveMessages'
        aggregation: 'Minimum'
        operator: 'GreaterThan'
        threshold: backlogMessages
        dimension: onQueue
      }
    ]
  }
  {
    name: '${programName}-stalled'
    description: 'Messages have been waiting for 30 minutes and none was completed: nobody works, or nothing can be stored.'
    severity: 1
    scope: serviceBusId
    window: 'PT30M'
    criteria: [
      {
        namespace: 'Microsoft.ServiceBus/namespaces'
        metric: 'ActiveMessages'
        aggregation: 'Minimum'
        operator: 'GreaterThan'
        threshold: 0
        dimension: onQueue
      }
      {
        namespace: 'Microsoft.ServiceBus/namespaces'
        metric: 'CompleteMessage'
        aggregation: 'Total'
        operator: 'LessThanOrEqual'
        threshold: 0
        dimension: onQueue
      }
    ]
  }
  {
    name: '${programName}-queue-filling'
    description: 'The queue is filled to three quarters, dead letters included. A full queue refuses its senders.'
    severity: 1
    scope: serviceBusId
    window: 'PT15M'
    criteria: [
      {
        namespace: 'Microsoft.ServiceBus/namespaces'
        metric: 'Size'
        aggregation: 'Average'
        operator: 'GreaterThan'
        threshold: queueMegabytes * 1024 * 1024 / 4 * 3
        dimension: onQueue
      }
    ]
  }
  {
    name: '${programName}-queue-throttled'
    description: 'Service Bus turns requests away: the namespace is at the limit of its tier.'
    severity: 3
    scope: serviceBusId
    window: 'PT15M'
    criteria: [
      {
        namespace: 'Microsoft.ServiceBus/namespaces'
        metric: 'ThrottledRequests'
        aggregation: 'Total'
        operator: 'GreaterThan'
        threshold: 10
        dimension: onQueue
      }
    ]
  }
  {
    name: '${programName}-store-throttled'
    description: 'Cosmos DB answers 429 to many requests: more orders arrive than the throughput pays for.'
    severity: 3
    scope: cosmosId
    window: 'PT15M'
    criteria: [
      {
        namespace: 'Microsoft.DocumentDB/databaseAccounts'
        metric: 'TotalRequests'
        aggregation: 'Count'
        operator: 'GreaterThan'
        threshold: 100
        dimension: {
          name: 'StatusCode'
          value: '429'
        }
      }
    ]
  }
]

var logRules logRule[] = [
  {
    name: '${programName}-content-conflict'
    description: 'A message id came back with other content: a sender reuses ids. The first is stored, the second is a dead letter.'
    severity: 1
    query: loadTextContent('../queries/content-conflict.kql')
    window: 'PT15M'
    threshold: 0
    autoMitigate: false
  }
  {
    name: '${programName}-not-ready'
    description: 'A replica has not been ready for more than 10 minutes: the store or the queue cannot be used, handlers hang, or messages wait and none is received.'
    severity: 1
    query: loadTextContent('../queries/not-ready.kql')
    window: 'PT6H'
    threshold: 0
    autoMitigate: true
  }
  {
    name: '${programName}-store-outage'
    description: 'The circuit breaker opened within the last 15 minutes: the store failed several times in a row. Messages wait; nothing is lost.'
    severity: 2
    query: loadTextContent('../queries/store-outage.kql')
    window: 'PT15M'
    threshold: 0
    autoMitigate: true
  }
  {
    name: '${programName}-outbox-waiting'
    description: 'Committed messages have been waiting to be sent for more than 15 minutes: a queue or topic that the worker sends to cannot be used. Nothing is lost. Which one: outbox list.'
    severity: 2
    query: loadTextContent('../queries/outbox-waiting.kql')
    window: 'PT15M'
    threshold: 0
    autoMitigate: true
  }
  {
    name: '${programName}-redelivery'
    description: 'Many messages are abandoned or lose their lock: each increments the delivery count and the work is done again.'
    severity: 3
    query: loadTextContent('../queries/redelivery.kql')
    window: 'PT15M'
    threshold: 50
    autoMitigate: true
  }
  {
    name: '${programName}-scaler-failed'
    description: 'The scaler cannot read the length of the queue, so nothing starts a replica. Mostly a missing role.'
    severity: 1
    query: loadTextContent('../queries/scaler-failed.kql')
    window: 'PT30M'
    threshold: 3
    autoMitigate: true
  }
]

resource metricAlerts 'Microsoft.Insights/metricAlerts@2026-01-01' = [
  for rule in metricRules: {
    name: rule.name
    location: 'global'
    tags: tags
    properties: {
      description: rule.description
      severity: rule.severity
      enabled: true
      scopes: [rule.scope]
      evaluationFrequency: 'PT5M'
      windowSize: rule.window
      autoMitigate: true
      criteria: {
        'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
        allOf: map(rule.criteria, (criterion, i) => {
          criterionType: 'StaticThresholdCriterion'
          name: 'criterion-${i}'
          metricNamespace: criterion.namespace
          metricName: criterion.metric
          timeAggregation: criterion.aggregation
          operator: criterion.operator
          threshold: criterion.threshold
          dimensions: [
            {
              name: criterion.dimension.name
              operator: 'Include'
              values: [criterion.dimension.value]
            }
          ]
        })
      }
      actions: [
        {
          actionGroupId: actionGroupId
        }
      ]
    }
  }
]

resource logAlerts 'Microsoft.Insights/scheduledQueryRules@2026-03-01' = [
  for rule in logRules: {
    name: rule.name
    location: location
    tags: tags
    kind: 'LogAlert'
    properties: {
      displayName: rule.name
      description: rule.description
      severity: rule.severity
      enabled: true
      scopes: [workspaceId]
      evaluationFrequency: 'PT5M'
      windowSize: rule.window
      autoMitigate: rule.autoMitigate
      // Windows overlap, so that a line which is ingested late is not missed. Less than their overlap is muted: what comes
      // while notices are muted is seen again afterwards.
      muteActionsDuration: rule.autoMitigate ? null : 'PT10M'
      // The tables of a new workspace come with their first line.
      skipQueryValidation: true
      criteria: {
        allOf: [
          {
            query: replace(rule.query, '{app}', appName)
            timeAggregation: 'Count'
            operator: 'GreaterThan'
            threshold: rule.threshold
            failingPeriods: {
              numberOfEvaluationPeriods: 1
              minFailingPeriodsToAlert: 1
            }
          }
        ]
      }
      actions: {
        actionGroups: [actionGroupId]
      }
    }
  }
]
