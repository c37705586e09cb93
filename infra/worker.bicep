metadata description = 'The container app that runs the worker: image and configuration in one revision. Deployed after main.bicep, each time there is a new image or setting.'

import { namesFor } from 'names.bicep'

@description('Name of the program, as given to main.bicep; part of resource names and of alerts, and the service name of its telemetry. Letters, digits and single dashes between them.')
@minLength(1)
@maxLength(20)
param programName string = 'orderworker'

@description('Name of the environment, as given to main.bicep.')
@minLength(1)
@maxLength(20)
param environmentName string = 'dev'

@description('Region, as given to main.bicep.')
param location string = resourceGroup().location

@description('Further tags of every resource.')
param tags object = {}

@description('Image to run, with registry and tag or digest.')
@minLength(1)
param image string

@description('Client id of the worker identity: output AZURE_WORKER_CLIENT_ID of main.bicep.')
param workerClientId string = ''

@description('Host name of the Service Bus namespace: output SERVICEBUS_NAMESPACE_FQDN of main.bicep.')
param serviceBusFqdn string = ''

@description('Endpoint of the Cosmos DB account: output COSMOS_ENDPOINT of main.bicep.')
param cosmosEndpoint string = ''

@description('Queue that the program reads.')
param queueName string = 'orders'

@description('Cosmos DB database.')
param databaseName string = 'orders'

@description('Cosmos DB container.')
param containerName string = 'orders'

@description('CPU and memory of a replica: 0.25, 0.5 or 1 core.')
@allowed(['small', 'medium', 'large'])
param size string = 'small'

@description('Messages that one replica works on at a time.')
@minValue(1)
param concurrency int = loadJsonContent('limits.json').worker.concurrency

@description('Fewest replicas. 0 costs nothing while the queue is empty; 1 answers the first message at once and stops churn on a trickle.')
@minValue(0)
param minReplicas int = loadJsonContent('limits.json').scale.minReplicas

@description('Most replicas.')
@minValue(1)
param maxReplicas int = loadJsonContent('limits.json').scale.maxReplicas

@description('Waiting messages for each replica. About concurrency x accepted wait / time of one message.')
@minValue(1)
param messagesPerReplica int = loadJsonContent('limits.json').scale.messagesPerReplica

@description('Name of this consumer, where several consumers share a container. Once orders are stored it must stay.')
param consumer string = ''

@description('Writes an inbox record beside the documents of a message. It expires after inboxRecordRetention of limits.json, and the key with it; without one a key is remembered as long as its first document.')
param inboxRecord bool = false

@description('Least severe log lines to write. Not less than info: the line that says that a replica is ready again ends an alert.')
@allowed(['debug', 'info'])
param logLevel string = 'info'

@description('Queues and topics of the namespace that the handler may send messages to. main.bicep gives the worker the right to.')
param destinations string[] = []

@description('Further settings of the worker by the names of their variables, such as {"WORKER_HASH_IGNORE":"/sentAt"}. They win over those above.')
param moreSettings object = {}

@description('Runs the preflight check as an init container: a replica starts only once every finding is gone.')
param preflight bool = false

@description('OTLP endpoint for traces and metrics. Empty: nothing is exported, or what the telemetry agent injects.')
param otlpEndpoint string = ''

@description('Protocol of the OTLP endpoint.')
@allowed(['http/protobuf', 'grpc'])
param otlpProtocol string = 'http/protobuf'

@description('Key Vault secret that holds the headers of the OTLP endpoint, such as an API key. The worker identity must be allowed to read it.')
param otlpHeadersSecretUri string = ''

// What worker.bicepparam says where nobody has named an image: it would be looked for at Docker Hub for a quarter of an hour.
var chosenImage = image == 'orderworker:none'
  ? fail('There is no image: azd deploy builds one, or set SERVICE_WORKER_IMAGE_NAME to one that the registry has.')
  : image

var limits = loadJsonContent('limits.json')
var names = namesFor(subscription().subscriptionId, programName, environmentName, location)
var chosenSize = limits.sizes[size]
var allTags = union(tags, {
  'azd-env-name': environmentName
})

resource managedEnvironment 'Microsoft.App/managedEnvironments@2026-01-01' existing = {
  name: names.managedEnvironment
}

resource workerIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' existing = {
  name: names.workerIdentity
}

resource platformIdentity 'Microsoft.ManagedIdentity/userAssignedIdentities@2024-11-30' existing = {
  name: names.platformIdentity
}

resource registry 'Microsoft.ContainerRegistry/registries@2025-11-01' existing = {
  name: names.registry
}

resource actionGroup 'Microsoft.Insights/actionGroups@2023-01-01' existing = {
  name: names.actionGroup
}

var settings = [
  {
    // There are two identities on the app: without the id the endpoint would look for a third, the app's own.
    name: 'AZURE_CLIENT_ID'
    value: empty(workerClientId)
      ? fail('workerClientId is empty: set AZURE_WORKER_CLIENT_ID to the output of main.bicep.')
      : workerClientId
  }
  {
    name: 'AZURE_TOKEN_CREDENTIALS'
    value: 'ManagedIdentityCredential'
  }
  {
    name: 'SERVICEBUS_NAMESPACE_FQDN'
    value: empty(serviceBusFqdn)
      ? fail('serviceBusFqdn is empty: set SERVICEBUS_NAMESPACE_FQDN to the output of main.bicep.')
      : serviceBusFqdn
  }
  {
    name: 'SERVICEBUS_QUEUE'
    value: queueName
  }
  {
    name: 'COSMOS_ENDPOINT'
    value: empty(cosmosEndpoint)
      ? fail('cosmosEndpoint is empty: set COSMOS_ENDPOINT to the output of main.bicep.')
      : cosmosEndpoint
  }
  {
    name: 'COSMOS_DATABASE'
    value: databaseName
  }
  {
    name: 'COSMOS_CONTAINER'
    value: containerName
  }
  {
    name: 'WORKER_CONCURRENCY'
    value: string(concurrency)
  }
  {
    name: 'WORKER_LOCK_DURATION'
    value: '${limits.queue.lockDuration.seconds}s'
  }
  {
    name: 'WORKER_MAX_DELIVERY_COUNT'
    value: string(limits.queue.maxDeliveryCount)
  }
  {
    name: 'WORKER_DUPLICATE_DETECTION_WINDOW'
    value: '${limits.queue.duplicateDetectionWindow.seconds}s'
  }
  {
    name: 'WORKER_MESSAGE_TTL'
    value: '${limits.queue.messageTimeToLive.seconds}s'
  }
  {
    name: 'WORKER_REVIEW_WINDOW'
    value: '${limits.store.reviewWindow.seconds}s'
  }
  {
    name: 'WORKER_DRAIN_TIMEOUT'
    value: '${limits.worker.drainTimeoutSeconds}s'
  }
  {
    name: 'WORKER_HEALTH_ADDRESS'
    value: ':${limits.worker.healthPort}'
  }
  {
    name: 'WORKER_LOG_LEVEL'
    value: logLevel
  }
  {
    // The collector must know the bound, or it lets the heap grow until the container is killed.
    name: 'GOMEMLIMIT'
    value: chosenSize.goMemoryLimit
  }
  {
    name: 'OTEL_SERVICE_NAME'
    value: programName
  }
  {
    name: 'OTEL_RESOURCE_ATTRIBUTES'
    value: 'deployment.environment.name=${environmentName}'
  }
]

var consumerSettings = empty(consumer)
  ? []
  : [
      {
        name: 'WORKER_CONSUMER'
        value: consumer
      }
    ]

var inboxRecordSettings = inboxRecord
  ? [
      {
        name: 'WORKER_INBOX_RECORD'
        value: 'true'
      }
      {
        name: 'WORKER_INBOX_RECORD_TTL'
        value: '${limits.store.inboxRecordRetention.seconds}s'
      }
    ]
  : []

// The telemetry agent names itself to the container as the endpoint of all signals and takes no metrics: each export would
// fail, with a log line every minute.
var exporterSettings = empty(otlpEndpoint)
  ? [
      {
        name: 'OTEL_METRICS_EXPORTER'
        value: 'none'
      }
    ]
  : [
      {
        name: 'OTEL_EXPORTER_OTLP_ENDPOINT'
        value: otlpEndpoint
      }
      {
        name: 'OTEL_EXPORTER_OTLP_PROTOCOL'
        value: otlpProtocol
      }
    ]

var exporterSecrets = empty(otlpHeadersSecretUri)
  ? []
  : [
      {
        name: 'OTEL_EXPORTER_OTLP_HEADERS'
        secretRef: 'otlp-headers'
      }
    ]

var destinationSettings = empty(destinations)
  ? []
  : [
      {
        name: 'WORKER_DESTINATIONS'
        value: join(destinations, ',')
      }
    ]

var namedSettings = concat(
  settings,
  consumerSettings,
  inboxRecordSettings,
  destinationSettings,
  exporterSettings,
  exporterSecrets
)
var environmentVariables = concat(
  filter(namedSettings, setting => !contains(moreSettings, setting.name)),
  map(items(moreSettings), setting => {
    name: setting.key
    value: string(setting.value)
  })
)

resource app 'Microsoft.App/containerApps@2026-01-01' = {
  name: names.app
  location: location
  tags: union(allTags, {
    'azd-service-name': 'worker'
  })
  identity: {
    type: 'UserAssigned'
    userAssignedIdentities: {
      '${workerIdentity.id}': {}
      '${platformIdentity.id}': {}
    }
  }
  properties: {
    environmentId: managedEnvironment.id
    workloadProfileName: 'Consumption'
    configuration: {
      // In any other mode an old revision would go on consuming with the old code.
      activeRevisionsMode: 'Single'
      registries: [
        {
          server: registry.properties.loginServer
          identity: platformIdentity.id
        }
      ]
      identitySettings: [
        {
          identity: platformIdentity.id
          lifecycle: 'None'
        }
        {
          identity: workerIdentity.id
          lifecycle: preflight ? 'All' : 'Main'
        }
      ]
      secrets: empty(otlpHeadersSecretUri)
        ? []
        : [
            {
              name: 'otlp-headers'
              keyVaultUrl: otlpHeadersSecretUri
              identity: workerIdentity.id
            }
          ]
    }
    template: {
      // Longer than the drain, so that a replica has abandoned its messages before it is killed. Nothing depends on it:
      // an early kill increments the delivery count of what the replica held.
      terminationGracePeriodSeconds: limits.worker.terminationGraceSeconds
      initContainers: preflight
        ? [
            {
              name: 'check'
              image: chosenImage
              args: ['check']
              env: environmentVariables
              resources: {
                cpu: json(chosenSize.cpu)
                memory: chosenSize.memory
              }
            }
          ]
        : []
      containers: [
        {
          name: 'worker'
          image: chosenImage
          args: ['run']
          env: environmentVariables
          resources: {
            cpu: json(chosenSize.cpu)
            memory: chosenSize.memory
          }
          // On a quarter of a core an answer waits for seconds behind bodies of megabytes: no probe has a short timeout.
          probes: [
            {
              type: 'Startup'
              httpGet: {
                path: limits.worker.livenessPath
                port: limits.worker.healthPort
              }
              periodSeconds: 3
              timeoutSeconds: 10
              failureThreshold: 10
            }
            {
              // About the process only: were it about the store, an outage would restart every replica in a loop.
              type: 'Liveness'
              httpGet: {
                path: limits.worker.livenessPath
                port: limits.worker.healthPort
              }
              periodSeconds: 15
              timeoutSeconds: 10
              failureThreshold: 4
            }
            {
              // Decides when a new revision takes over from the old one: not before it can use queue and store.
              type: 'Readiness'
              httpGet: {
                path: limits.worker.readinessPath
                port: limits.worker.healthPort
              }
              periodSeconds: 5
              timeoutSeconds: 10
              failureThreshold: 3
            }
          ]
        }
      ]
      scale: {
        minReplicas: minReplicas
        maxReplicas: maxReplicas
        pollingInterval: limits.scale.pollingIntervalSeconds
        cooldownPeriod: limits.scale.cooldownSeconds
        rules: [
          {
            name: 'queue-length'
            custom: {
              type: 'azure-servicebus'
              identity: platformIdentity.id
              // All values are strings; the namespace is the short name, to which the scaler adds the suffix.
              metadata: {
                namespace: names.serviceBus
                queueName: queueName
                messageCount: string(messagesPerReplica)
                activationMessageCount: string(limits.scale.activationMessages)
              }
            }
          }
        ]
      }
    }
  }
}

resource restarts 'Microsoft.Insights/metricAlerts@2026-01-01' = {
  name: '${programName}-restarts'
  location: 'global'
  tags: allTags
  properties: {
    description: 'A replica was restarted more than twice: it crashes, is out of memory, or does not answer its liveness probe.'
    severity: 2
    enabled: true
    scopes: [app.id]
    evaluationFrequency: 'PT5M'
    windowSize: 'PT15M'
    autoMitigate: true
    criteria: {
      'odata.type': 'Microsoft.Azure.Monitor.SingleResourceMultipleMetricCriteria'
      allOf: [
        {
          criterionType: 'StaticThresholdCriterion'
          name: 'restarts'
          metricNamespace: 'Microsoft.App/containerApps'
          metricName: 'RestartCount'
          timeAggregation: 'Maximum'
          operator: 'GreaterThan'
          threshold: 2
        }
      ]
    }
    actions: [
      {
        actionGroupId: actionGroup.id
      }
    ]
  }
}

@description('Name of the container app.')
output SERVICE_WORKER_NAME string = app.name

@description('Revision that this deployment made.')
output SERVICE_WORKER_REVISION string = app.properties.latestRevisionName
