metadata description = 'The names of all resources, computed alike by every template.'

@description('The name of each resource of one environment.')
@export()
type resourceNames = {
  @description('Resource group.')
  resourceGroup: string

  @description('Service Bus namespace; part of a public host name.')
  serviceBus: string

  @description('Cosmos DB account; part of a public host name.')
  cosmos: string

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

@description('Returns a name that every resource takes, or refuses it before anything is made. azd accepts characters in the name of an environment that the workspace and the Container Apps environment do not.')
func checked(what string, name string) string =>
  empty(filter(['_', '.', '(', ')', ' ', '--'], each => contains(name, each))) && !startsWith(name, '-') && !endsWith(
      name,
      '-'
    )
    ? name
    : fail('The name of the ${what} may hold letters, digits and single dashes between them: ${name}')

@description('Returns what is unique in the world about one environment of one program, for host names.')
func digest(subscriptionId string, environmentName string, location string) string =>
  toLower(uniqueString(subscriptionId, environmentName, location))

@description('Returns the resource names of one environment of one program. Host names carry a digest of subscription, environment and region.')
@export()
func namesFor(subscriptionId string, programName string, environmentName string, location string) resourceNames => {
  resourceGroup: 'rg-${checked('program', programName)}-${checked('environment', environmentName)}'
  serviceBus: 'sb-${toLower(programName)}-${digest(subscriptionId, environmentName, location)}'
  cosmos: 'cosmos-${toLower(programName)}-${digest(subscriptionId, environmentName, location)}'
  registry: 'cr${replace(toLower(programName), '-', '')}${digest(subscriptionId, environmentName, location)}'
  managedEnvironment: 'cae-${programName}-${checked('environment', environmentName)}'
  app: 'ca-${toLower(checked('program', programName))}'
  workerIdentity: 'id-${programName}-worker-${environmentName}'
  platformIdentity: 'id-${programName}-platform-${environmentName}'
  workspace: 'log-${programName}-${checked('environment', environmentName)}'
  applicationInsights: 'appi-${programName}-${environmentName}'
  actionGroup: 'ag-${programName}-${environmentName}'
  network: 'vnet-${programName}-${environmentName}'
}
