package infra_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// app returns the container app of a snapshot.
func app(t *testing.T, snapshot string) resource {
	t.Helper()
	return one(t, snapshot, "Microsoft.App/containerApps")
}

// environment returns the variables that a snapshot gives to a container. A secret is given as its name.
func environment(t *testing.T, snapshot string) map[string]string {
	t.Helper()
	variables := map[string]string{}
	list, ok := at(t, app(t, snapshot).Properties, "template", "containers", 0, "env").([]any)
	require.True(t, ok, "the variables of %s are not known before a deployment", snapshot)
	for _, each := range list {
		variable := each.(map[string]any)
		value, _ := variable["value"].(string)
		if secret, ok := variable["secretRef"].(string); ok {
			value = secret
		}
		name := variable["name"].(string)
		require.NotContains(t, variables, name, "given twice")
		require.NotEmpty(t, value, name)
		variables[name] = value
	}
	return variables
}

// eachNode calls visit for every node of the Go files of a folder, tests left out.
func eachNode(t *testing.T, folder string, visit func(ast.Node)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, paths, "%s has no Go files", folder)
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			visit(n)
			return true
		})
	}
}

// text returns the value of a string literal.
func text(n ast.Node) (string, bool) {
	literal, ok := n.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(literal.Value)
	return value, err == nil
}

// literals returns the string literals of the Go files of a folder.
func literals(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	eachNode(t, folder, func(n ast.Node) {
		if value, ok := text(n); ok {
			found = append(found, value)
		}
	})
	return found
}

// settings returns the variables that the worker reads, each with its default. They stand in a table with the columns
// variable, flag, default, meaning.
func settings(t *testing.T) map[string]string {
	t.Helper()
	name := regexp.MustCompile(`^(SERVICEBUS|COSMOS|WORKER)_[A-Z0-9_]*[A-Z0-9]$`)
	found := map[string]string{}
	eachNode(t, "../worker/app", func(n ast.Node) {
		row, ok := n.(*ast.CompositeLit)
		if !ok || len(row.Elts) < 4 {
			return
		}
		variable, ok := text(row.Elts[0])
		fallback, hasDefault := text(row.Elts[2])
		if ok && hasDefault && name.MatchString(variable) {
			found[variable] = fallback
		}
	})
	require.NotEmpty(t, found, "the table of settings has another form now")
	return found
}

// platformVariables are read by the Azure SDK, by OpenTelemetry and by the Go runtime.
var platformVariables = []string{
	"AZURE_CLIENT_ID", "AZURE_TOKEN_CREDENTIALS", "GOMEMLIMIT", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES",
	"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_HEADERS", "OTEL_METRICS_EXPORTER",
}

func TestEveryVariableOfTheContainerIsReadByTheWorker(t *testing.T) {
	known := settings(t)
	for _, snapshot := range workerSnapshots {
		for name := range environment(t, snapshot) {
			if slices.Contains(platformVariables, name) {
				continue
			}
			require.Contains(t, known, name, "%s: the worker refuses a variable that it does not know", snapshot)
		}
	}
}

func TestContainerIsToldAllThatTheQueueWasMadeWith(t *testing.T) {
	l := limits(t)
	got := environment(t, "worker")
	for name, want := range map[string]time.Duration{
		"WORKER_LOCK_DURATION":              l.Queue.LockDuration.Value(),
		"WORKER_MESSAGE_TTL":                l.Queue.MessageTimeToLive.Value(),
		"WORKER_DUPLICATE_DETECTION_WINDOW": l.Queue.DuplicateDetectionWindow.Value(),
		"WORKER_REVIEW_WINDOW":              l.Store.ReviewWindow.Value(),
		"WORKER_DRAIN_TIMEOUT":              time.Duration(l.Worker.DrainTimeoutSeconds) * time.Second,
	} {
		value, err := time.ParseDuration(got[name])
		require.NoError(t, err, name)
		require.Equal(t, want, value, name)
	}
	require.Equal(t, strconv.Itoa(l.Queue.MaxDeliveryCount), got["WORKER_MAX_DELIVERY_COUNT"])
	require.Equal(t, strconv.Itoa(l.Worker.Concurrency), got["WORKER_CONCURRENCY"])
	require.Equal(t, ":"+strconv.Itoa(l.Worker.HealthPort), got["WORKER_HEALTH_ADDRESS"])
	require.Equal(t, l.Sizes["small"].GoMemoryLimit, got["GOMEMLIMIT"])
	require.NotContains(t, got, "WORKER_INBOX_RECORD", "the documents decide unless asked otherwise")

	recorded := environment(t, "worker-production")
	require.Equal(t, "true", recorded["WORKER_INBOX_RECORD"])
	require.Equal(t, strconv.FormatInt(l.Store.InboxRecordRetention.Seconds, 10)+"s", recorded["WORKER_INBOX_RECORD_TTL"])
}

// A review of dead letters with another consumer or key than the worker has says that nothing was applied.
func TestDeskTakesEverySettingFromTheApp(t *testing.T) {
	m := regexp.MustCompile(`test\("(\^[^"]+)"\)`).FindStringSubmatch(read(t, "../docs/deploy.md"))
	require.NotNil(t, m)
	taken := regexp.MustCompile(m[1])
	for name := range settings(t) {
		require.Regexp(t, taken, name)
	}
	for _, name := range platformVariables {
		require.NotRegexp(t, taken, name, "on a desk there is no managed identity")
	}
	require.Contains(t, read(t, "../docs/operations.md"), "(deploy.md#first-minutes)")
}

func TestDefaultsOfTheWorkerAreTheLimits(t *testing.T) {
	l := limits(t)
	known := settings(t)
	for name, want := range map[string]time.Duration{
		"WORKER_LOCK_DURATION": l.Queue.LockDuration.Value(),
		"WORKER_MESSAGE_TTL":   l.Queue.MessageTimeToLive.Value(),
		"WORKER_REVIEW_WINDOW": l.Store.ReviewWindow.Value(),
		"WORKER_DRAIN_TIMEOUT": time.Duration(l.Worker.DrainTimeoutSeconds) * time.Second,
	} {
		value, err := time.ParseDuration(known[name])
		require.NoError(t, err, "%s: %q", name, known[name])
		require.Equal(t, want, value, name)
	}
	require.Equal(t, strconv.Itoa(l.Queue.MaxDeliveryCount), known["WORKER_MAX_DELIVERY_COUNT"])
	require.Equal(t, strconv.Itoa(l.Worker.Concurrency), known["WORKER_CONCURRENCY"])
	require.True(t, strings.HasSuffix(known["WORKER_HEALTH_ADDRESS"], ":"+strconv.Itoa(l.Worker.HealthPort)), known["WORKER_HEALTH_ADDRESS"])
}

func TestEveryOutputIsAVariableOfTheWorkerOrOfAzd(t *testing.T) {
	output := regexp.MustCompile(`(?m)^output (\w+) string`)
	names := func(path string) []string {
		var found []string
		for _, m := range output.FindAllStringSubmatch(read(t, path), -1) {
			found = append(found, m[1])
		}
		return found
	}
	known := slices.Collect(maps.Keys(settings(t)))
	for _, name := range names("resources.bicep") {
		if !strings.HasPrefix(name, "AZURE_") {
			require.Contains(t, known, name)
		}
	}
	require.NotContains(t, names("main.bicep"), "AZURE_CLIENT_ID", "it would make a run on a desk look for a managed identity")
	require.Contains(t, names("main.bicep"), "AZURE_CONTAINER_REGISTRY_ENDPOINT", "azd pushes there")
	require.ElementsMatch(t, names("resources.bicep"), names("main.bicep"))
	for _, name := range []string{"AZURE_RESOURCE_GROUP", "AZURE_LOCATION", "AZURE_ENV_NAME"} {
		require.Contains(t, names("main.bicep"), name, "scripts and azd read it")
	}
}

func TestContainerIsProbedWhereTheWorkerAnswers(t *testing.T) {
	l := limits(t).Worker
	served := literals(t, "../worker")
	require.Contains(t, served, "GET "+l.LivenessPath)
	require.Contains(t, served, "GET "+l.ReadinessPath)
	want := map[string]string{"Startup": l.LivenessPath, "Liveness": l.LivenessPath, "Readiness": l.ReadinessPath}
	for _, snapshot := range workerSnapshots {
		got := map[string]string{}
		for _, probe := range at(t, app(t, snapshot).Properties, "template", "containers", 0, "probes").([]any) {
			got[at(t, probe, "type").(string)] = at(t, probe, "httpGet", "path").(string)
			require.Equal(t, float64(l.HealthPort), at(t, probe, "httpGet", "port"))
			require.LessOrEqual(t, at(t, probe, "failureThreshold"), 10.0, "the most that Container Apps takes")
			require.GreaterOrEqual(t, at(t, probe, "timeoutSeconds"), 10.0, "a quarter of a core may be busy for seconds with bodies of megabytes")
		}
		require.Equal(t, want, got, snapshot)
	}
}

// Health is served after the first look at the store, which an identity or an account that is silent draws out to its end.
func TestStartupProbeOutlastsTheFirstLookAtTheStore(t *testing.T) {
	m := regexp.MustCompile(`const openTimeout = (\d+) \* time\.Second`).FindStringSubmatch(read(t, "../worker/app/build.go"))
	require.NotNil(t, m)
	look, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	for _, snapshot := range workerSnapshots {
		for _, probe := range at(t, app(t, snapshot).Properties, "template", "containers", 0, "probes").([]any) {
			if at(t, probe, "type") == "Startup" {
				patience := at(t, probe, "periodSeconds").(float64) * at(t, probe, "failureThreshold").(float64)
				require.GreaterOrEqual(t, patience, look+4, "a process needs time to start besides, on a quarter of a core")
			}
		}
	}
}

func TestAnotherProgramIsDeployedUnderItsOwnNames(t *testing.T) {
	got := environment(t, "worker-production")
	require.Equal(t, "payments", got["SERVICEBUS_QUEUE"])
	require.Equal(t, "ledger", got["COSMOS_DATABASE"])
	require.Equal(t, "payments", got["COSMOS_CONTAINER"])
	require.Equal(t, "payments", got["OTEL_SERVICE_NAME"])
	require.Equal(t, "ca-payments", app(t, "worker-production").Name)
	for _, snapshot := range []string{"worker-production", "telemetry"} {
		for _, r := range resources(t, snapshot, "") {
			require.NotContains(t, r.Name, "orderworker", r.Type)
		}
	}
	database := one(t, "telemetry", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases")
	require.Equal(t, "ledger", at(t, database.Properties, "resource", "id"))
	for _, path := range templates(t) {
		for line := range strings.Lines(read(t, path)) {
			named := strings.Contains(line, "name: 'orderworker") || strings.Contains(line, "-orderworker-")
			require.False(t, named, "%s: a resource has a fixed name: %s", path, line)
		}
	}
}

func TestReplicaHasTimeToDrain(t *testing.T) {
	for _, snapshot := range workerSnapshots {
		template := at(t, app(t, snapshot).Properties, "template")
		require.Equal(t, float64(limits(t).Worker.TerminationGraceSeconds), at(t, template, "terminationGracePeriodSeconds"), snapshot)
	}
}

func TestAppRunsOneRevisionWithoutIngressAndHidesThePlatformIdentity(t *testing.T) {
	for _, snapshot := range workerSnapshots {
		configuration := at(t, app(t, snapshot).Properties, "configuration").(map[string]any)
		require.Equal(t, "Single", configuration["activeRevisionsMode"], "an old revision would go on consuming")
		require.NotContains(t, configuration, "ingress")
		platform := at(t, configuration, "registries", 0, "identity")
		require.Contains(t, configuration["identitySettings"], map[string]any{"identity": platform, "lifecycle": "None"}, snapshot)
		require.Equal(t, "worker", app(t, snapshot).Tags["azd-service-name"])
	}
	require.Equal(t, "Main", at(t, app(t, "worker").Properties, "configuration", "identitySettings", 1, "lifecycle"))
	require.Equal(t, "All", at(t, app(t, "worker-production").Properties, "configuration", "identitySettings", 1, "lifecycle"),
		"the preflight container needs the identity too")
}

func TestScaleRuleAsksTheQueueByIdentity(t *testing.T) {
	l := limits(t).Scale
	scale := at(t, app(t, "worker").Properties, "template", "scale")
	require.Equal(t, float64(l.MinReplicas), at(t, scale, "minReplicas"))
	require.Equal(t, float64(l.MaxReplicas), at(t, scale, "maxReplicas"))
	rule := at(t, scale, "rules", 0, "custom")
	require.Equal(t, "azure-servicebus", at(t, rule, "type"))
	require.Equal(t, at(t, app(t, "worker").Properties, "configuration", "registries", 0, "identity"), at(t, rule, "identity"))
	metadata := at(t, rule, "metadata").(map[string]any)
	for name, value := range metadata {
		require.IsType(t, "", value, "%s: the scaler takes strings only", name)
	}
	require.NotContains(t, metadata["namespace"], ".", "the scaler adds the suffix itself")
	require.Equal(t, environment(t, "worker")["SERVICEBUS_QUEUE"], metadata["queueName"])
	require.Equal(t, strconv.Itoa(l.MessagesPerReplica), metadata["messageCount"])
}

// The alert on a replica that is not ready ends with the line that it is ready again, or has stopped, which are of level
// info: with a higher level it would stay for hours after each incident.
func TestTemplateOffersNoLogLevelThatBlindsAnAlert(t *testing.T) {
	require.Contains(t, read(t, "../docs/operations.md"), "It looks back six hours")
	require.Regexp(t, `(?s)name: '\${programName}-not-ready'[^}]*window: 'PT6H'`, read(t, "modules/alerts.bicep"))
	require.Regexp(t, `(?m)^@allowed\(\['debug', 'info'\]\)\nparam logLevel string = 'info'$`, read(t, "worker.bicep"))
}

// Application Insights takes no metrics from the telemetry agent, which names itself as the endpoint of all signals.
func TestMetricsGoNowhereWithoutACollector(t *testing.T) {
	require.Equal(t, "none", environment(t, "worker")["OTEL_METRICS_EXPORTER"])
	require.NotContains(t, environment(t, "worker-production"), "OTEL_METRICS_EXPORTER", "it has a collector of its own")
}

func TestAlertQueriesUseTheWorkersOwnWords(t *testing.T) {
	words := literals(t, "../worker")
	paths, err := filepath.Glob("queries/*.kql")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	event := regexp.MustCompile(`'([a-z_]+)'`)
	key := regexp.MustCompile(`line\.([a-z_]+)`)
	for _, path := range paths {
		query := read(t, path)
		require.Contains(t, query, "ContainerAppName == '{app}'", path)
		for _, m := range event.FindAllStringSubmatch(query, -1) {
			require.Contains(t, words, m[1], "%s: no such event or part", path)
		}
		for _, m := range key.FindAllStringSubmatch(query, -1) {
			require.Contains(t, append(words, "level", "time", "msg"), m[1], "%s: no such key of a log line", path)
		}
	}
}
