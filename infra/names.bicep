metadata description = 'The names of all resources, computed alike by every template.'

@description('The name of each resource of one environment.')
@export()
type resourceNames = {
  @description('Resource group.')
  resourceGroup: string

  @description('Service Bus namespace; part of a public host name.')
  serviceBus: string

  @description('Queue that the worker reads.')
  queue: string

  @description('Cosmos DB account; part of a public host name.')
  cosmos: string

  @description('Cosmos DB database.')
  database: string

  @description('Cosmos DB container.')
  container: string

  @description('Container registry; part of a public host name.')
  registry: string

  @description('Container Apps environment.')
  managedEnvironment: string

  @description('Container app that runs the worker.')
  app: string

  @description('Identity that the code uses.')
  workerIdentity: string

  @description('Identity that pulls the image and reads the length of the queue.')
  platformIdentity: string

  @description('Log Analytics workspace.')
  workspace: string

  @description('Application Insights; only with the telemetry agent.')
  applicationInsights: string

  @description('Action group that alerts notify.')
  actionGroup: string

  @description('Virtual network; only with private networking.')
  network: string
}

@description('Returns the name of an environment, or refuses it. azd takes characters in it that the workspace and the Container Apps environment do not, which would be known only when half of the resources are there.')
func checked(environmentName string) string =>
  empty(filter(['_', '.', '(', ')', ' ', '--'], each => contains(environmentName, each))) && !startsWith(
      environmentName,
      '-'
    ) && !endsWith(environmentName, '-')
    ? environmentName
    : fail('The name of the environment may hold letters, digits and single dashes between them: ${environmentName}')

@description('Returns the resource names of one environment. Host names carry a digest of subscription, environment and region, since they must be unique in the world.')
@export()
func namesFor(subscriptionId string, environmentName string, location string) resourceNames => {
  resourceGroup: 'rg-orderworker-${checked(environmentName)}'
  serviceBus: 'sb-orderworker-${toLower(uniqueString(subscriptionId, environmentName, location))}'
  queue: 'orders'
  cosmos: 'cosmos-orderworker-${toLower(uniqueString(subscriptionId, environmentName, location))}'
  database: 'orders'
  container: 'orders'
  registry: 'crorderworker${toLower(uniqueString(subscriptionId, environmentName, location))}'
  managedEnvironment: 'cae-orderworker-${checked(environmentName)}'
  app: 'ca-orderworker'
  workerIdentity: 'id-orderworker-worker-${environmentName}'
  platformIdentity: 'id-orderworker-platform-${environmentName}'
  workspace: 'log-orderworker-${checked(environmentName)}'
  applicationInsights: 'appi-orderworker-${environmentName}'
  actionGroup: 'ag-orderworker-${environmentName}'
  network: 'vnet-orderworker-${environmentName}'
}
