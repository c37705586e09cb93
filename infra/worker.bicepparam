using './worker.bicep'

// azd sets the environment, and the image once it has pushed it; the ids and names below it are outputs of main.bicep,
// which azd keeps.
param programName = readEnvironmentVariable('ORDERWORKER_PROGRAM', 'orderworker')
param environmentName = readEnvironmentVariable('AZURE_ENV_NAME', 'dev')
param location = readEnvironmentVariable('AZURE_LOCATION', 'westeurope')
param image = readEnvironmentVariable('SERVICE_WORKER_IMAGE_NAME', 'orderworker:none')
param workerClientId = readEnvironmentVariable('AZURE_WORKER_CLIENT_ID', '')
param serviceBusFqdn = readEnvironmentVariable('SERVICEBUS_NAMESPACE_FQDN', '')
param cosmosEndpoint = readEnvironmentVariable('COSMOS_ENDPOINT', '')
param queueName = readEnvironmentVariable('SERVICEBUS_QUEUE', 'orders')
param databaseName = readEnvironmentVariable('COSMOS_DATABASE', 'orders')
param containerName = readEnvironmentVariable('COSMOS_CONTAINER', 'orders')

param size = readEnvironmentVariable('ORDERWORKER_SIZE', 'small')
param minReplicas = int(readEnvironmentVariable('ORDERWORKER_MIN_REPLICAS', '0'))
param maxReplicas = int(readEnvironmentVariable('ORDERWORKER_MAX_REPLICAS', '10'))
param messagesPerReplica = int(readEnvironmentVariable('ORDERWORKER_MESSAGES_PER_REPLICA', '200'))
param consumer = readEnvironmentVariable('ORDERWORKER_CONSUMER', '')
param inboxRecord = bool(readEnvironmentVariable('ORDERWORKER_INBOX_RECORD', 'false'))
param destinations = filter(
  map(
    concat(
      split(readEnvironmentVariable('ORDERWORKER_DESTINATION_QUEUES', ''), ','),
      split(readEnvironmentVariable('ORDERWORKER_DESTINATION_TOPICS', ''), ',')
    ),
    each => trim(each)
  ),
  each => !empty(each)
)
param logLevel = readEnvironmentVariable('ORDERWORKER_LOG_LEVEL', 'info')
param moreSettings = json(readEnvironmentVariable('ORDERWORKER_SETTINGS', '{}'))
param preflight = bool(readEnvironmentVariable('ORDERWORKER_PREFLIGHT', 'false'))
param otlpEndpoint = readEnvironmentVariable('ORDERWORKER_OTLP_ENDPOINT', '')
param otlpProtocol = readEnvironmentVariable('ORDERWORKER_OTLP_PROTOCOL', 'http/protobuf')
param otlpHeadersSecretUri = readEnvironmentVariable('ORDERWORKER_OTLP_HEADERS_SECRET_URI', '')
