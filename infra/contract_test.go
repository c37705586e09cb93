package infra_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// resource is one resource of a snapshot, as the template deploys it.
type resource struct {
	Type       string         `json:"type"`
	Name       string         `json:"name"`
	APIVersion string         `json:"apiVersion"`
	Tags       map[string]any `json:"tags"`
	Properties map[string]any `json:"properties"`
}

// resources returns those of a type in a snapshot.
func resources(t *testing.T, snapshot, kind string) []resource {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("snapshots", snapshot+".snapshot.json"))
	require.NoError(t, err)
	var content struct {
		PredictedResources []resource `json:"predictedResources"`
	}
	require.NoError(t, json.Unmarshal(raw, &content))
	require.NotEmpty(t, content.PredictedResources)
	return slices.DeleteFunc(content.PredictedResources, func(r resource) bool { return kind != "" && r.Type != kind })
}

// one returns the only resource of a type in a snapshot.
func one(t *testing.T, snapshot, kind string) resource {
	t.Helper()
	found := resources(t, snapshot, kind)
	require.Len(t, found, 1, "%s in %s", kind, snapshot)
	return found[0]
}

// at follows names and indices into decoded JSON.
func at(t *testing.T, value any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch key := step.(type) {
		case string:
			object, ok := value.(map[string]any)
			require.True(t, ok, "%q in %v", key, value)
			require.Contains(t, object, key)
			value = object[key]
		case int:
			list, ok := value.([]any)
			require.True(t, ok, "%d in %v", key, value)
			require.Greater(t, len(list), key)
			value = list[key]
		}
	}
	return value
}

// mainSnapshots are those of main.bicep, and workerSnapshots those of worker.bicep.
var (
	mainSnapshots   = []string{"standard", "production", "telemetry"}
	workerSnapshots = []string{"worker", "worker-production"}
)

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

func templates(t *testing.T) []string {
	t.Helper()
	top, err := filepath.Glob("*.bicep")
	require.NoError(t, err)
	modules, err := filepath.Glob("modules/*.bicep")
	require.NoError(t, err)
	require.NotEmpty(t, modules)
	return append(top, modules...)
}

func TestNoTemplateHandlesAKey(t *testing.T) {
	key := regexp.MustCompile(`(?i)listKeys|listConnectionStrings|AccountKey|SharedAccessKey|primarySharedKey|connectionString\s+string|password`)
	for _, path := range templates(t) {
		require.Empty(t, key.FindAllString(read(t, path), -1), path)
	}
}

func TestServicesTakeIdentitiesOnly(t *testing.T) {
	for _, snapshot := range mainSnapshots {
		bus := one(t, snapshot, "Microsoft.ServiceBus/namespaces").Properties
		require.Equal(t, true, bus["disableLocalAuth"], snapshot)
		require.Equal(t, "1.2", bus["minimumTlsVersion"], snapshot)
		account := one(t, snapshot, "Microsoft.DocumentDB/databaseAccounts").Properties
		require.Equal(t, true, account["disableLocalAuth"], snapshot)
		require.Equal(t, true, account["disableKeyBasedMetadataWriteAccess"], snapshot)
		require.Equal(t, "Tls12", account["minimalTlsVersion"], snapshot)
		registry := one(t, snapshot, "Microsoft.ContainerRegistry/registries").Properties
		require.Equal(t, false, registry["adminUserEnabled"], snapshot)
		require.Equal(t, false, registry["anonymousPullEnabled"], snapshot)
		require.Equal(t, true, at(t, one(t, snapshot, "Microsoft.OperationalInsights/workspaces").Properties, "features", "disableLocalAuth"), snapshot)
	}
}

func TestOnlyOneRegionWrites(t *testing.T) {
	for _, snapshot := range mainSnapshots {
		account := one(t, snapshot, "Microsoft.DocumentDB/databaseAccounts").Properties
		require.Equal(t, false, account["enableMultipleWriteLocations"], snapshot)
		require.Equal(t, false, account["enableAutomaticFailover"], snapshot)
		require.Equal(t, "Session", at(t, account, "consistencyPolicy", "defaultConsistencyLevel"), snapshot)
	}
}

func TestQueueHasTheLimits(t *testing.T) {
	l := limits(t).Queue
	for _, snapshot := range mainSnapshots {
		require.Equal(t, map[string]any{
			"lockDuration":                        l.LockDuration.ISO8601,
			"maxDeliveryCount":                    float64(l.MaxDeliveryCount),
			"defaultMessageTimeToLive":            l.MessageTimeToLive.ISO8601,
			"duplicateDetectionHistoryTimeWindow": l.DuplicateDetectionWindow.ISO8601,
			"deadLetteringOnMessageExpiration":    true,
			"requiresDuplicateDetection":          true,
			"requiresSession":                     false,
			"enablePartitioning":                  false,
			"maxSizeInMegabytes":                  float64(l.MaxSizeMegabytes),
		}, one(t, snapshot, "Microsoft.ServiceBus/namespaces/queues").Properties, snapshot)
	}
}

func TestContainerKeepsOrdersAndIndexesWhatWaitsToBeSentAlone(t *testing.T) {
	l := limits(t).Store
	for _, snapshot := range mainSnapshots {
		container := at(t, one(t, snapshot, "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers").Properties, "resource")
		require.Equal(t, l.PartitionKeyPath, at(t, container, "partitionKey", "paths", 0), snapshot)
		require.Len(t, at(t, container, "partitionKey", "paths"), 1, snapshot)
		require.Equal(t, float64(l.PartitionKeyVersion), at(t, container, "partitionKey", "version"), snapshot)
		require.Equal(t, float64(l.DefaultTimeToLiveSeconds), at(t, container, "defaultTtl"), snapshot)
		require.Equal(t, "consistent", at(t, container, "indexingPolicy", "indexingMode"), "time to live needs an index")
		require.Equal(t, []any{map[string]any{"path": "/outbox/unsent/?"}}, at(t, container, "indexingPolicy", "includedPaths"), "what the relay searches by, and nothing else")
		require.Equal(t, "/*", at(t, container, "indexingPolicy", "excludedPaths", 0, "path"), snapshot)
	}
}

func TestThroughputIsOnlyAskedWhereItIsPaidFor(t *testing.T) {
	options := func(snapshot string) any {
		return at(t, one(t, snapshot, "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers").Properties, "options")
	}
	require.Empty(t, options("standard"), "a serverless account refuses any throughput")
	require.Equal(t, 4000.0, at(t, options("production"), "autoscaleSettings", "maxThroughput"))
	require.Equal(t, 1000.0, at(t, options("telemetry"), "autoscaleSettings", "maxThroughput"), "the free tier covers 1000")
}

func TestRolesAllowNoMoreThanTheWorkNeeds(t *testing.T) {
	const account, items = "Microsoft.DocumentDB/databaseAccounts/", "Microsoft.DocumentDB/databaseAccounts/sqlDatabases/containers/items/"
	want := map[string][]any{
		"orderworker metadata reader": {account + "readMetadata"},
		"orderworker writer":          {account + "readMetadata", items + "create", items + "read"},
		"orderworker reviewer": {account + "readMetadata", items + "create", items + "read",
			account + "sqlDatabases/containers/executeQuery", account + "sqlDatabases/containers/readChangeFeed"},
	}
	for _, snapshot := range mainSnapshots {
		got := map[string][]any{}
		for _, role := range resources(t, snapshot, "Microsoft.DocumentDB/databaseAccounts/sqlRoleDefinitions") {
			name := role.Properties["roleName"].(string)
			got[name] = at(t, role.Properties, "permissions", 0, "dataActions").([]any)
		}
		require.Equal(t, want, got, snapshot)
	}
}

// Azure locks the account for each write of a child and answers 412 to a second one at the same time.
func TestWritesToTheCosmosAccountFormOneChain(t *testing.T) {
	declared := regexp.MustCompile(`(?ms)^resource (\w+) 'Microsoft\.DocumentDB/databaseAccounts([/\w]*)@.*?^}$`)
	found := declared.FindAllStringSubmatch(read(t, "modules/cosmos.bicep"), -1)
	require.Len(t, found, 10)
	require.Empty(t, found[0][2], "the account comes first")
	for i, m := range found[1:] {
		before := regexp.QuoteMeta(found[i][1])
		require.Regexp(t, `(?m)^  (parent: `+before+`|dependsOn: \[`+before+`\])$`, m[0], "%s does not wait for %s", m[1], found[i][1])
	}
}

func TestProductionMayLockWhatCannotBeMadeAgain(t *testing.T) {
	for snapshot, want := range map[string]int{"standard": 0, "production": 2} {
		locks := resources(t, snapshot, "Microsoft.Authorization/locks")
		require.Len(t, locks, want, snapshot)
		for _, lock := range locks {
			require.Equal(t, "CanNotDelete", lock.Properties["level"], "ReadOnly would stop deployments")
		}
	}
}

func TestRoleAssignmentsNameTheirPrincipalAndItsKind(t *testing.T) {
	for _, snapshot := range mainSnapshots {
		for _, assignment := range resources(t, snapshot, "Microsoft.Authorization/roleAssignments") {
			require.Contains(t, []any{"ServicePrincipal", "User", "Group"}, assignment.Properties["principalType"], assignment.Name)
			require.NotEmpty(t, assignment.Properties["principalId"], assignment.Name)
		}
	}
}

func TestNoAssignmentIsMadeTwice(t *testing.T) {
	senders := map[string]int{}
	for _, snapshot := range mainSnapshots {
		seen := map[string]bool{}
		for _, r := range resources(t, snapshot, "Microsoft.Authorization/roleAssignments") {
			p := r.Properties
			key := strings.ToLower(p["principalId"].(string) + " " + p["roleDefinitionId"].(string) + " " + r.Name)
			require.False(t, seen[key], "%s in %s", key, snapshot)
			seen[key] = true
			if strings.Contains(key, "69a216fc-b8fb-44d8-bc22-1f3c2cd27a39") {
				senders[snapshot]++
			}
		}
	}
	require.Equal(t, 2, senders["telemetry"], "the operator, who is named as a producer too, and one producer, who is named twice")
}

func TestPrivateNetworkingClosesEveryDoor(t *testing.T) {
	require.Equal(t, "Disabled", one(t, "production", "Microsoft.ServiceBus/namespaces").Properties["publicNetworkAccess"])
	require.Equal(t, "Disabled", one(t, "production", "Microsoft.DocumentDB/databaseAccounts").Properties["publicNetworkAccess"])
	require.Equal(t, "Disabled", one(t, "production", "Microsoft.ContainerRegistry/registries").Properties["publicNetworkAccess"])
	require.Equal(t, "Disabled", one(t, "production", "Microsoft.App/managedEnvironments").Properties["publicNetworkAccess"])
	require.Equal(t, true, at(t, one(t, "production", "Microsoft.App/managedEnvironments").Properties, "vnetConfiguration", "internal"))
	require.Len(t, resources(t, "production", "Microsoft.Network/privateEndpoints"), 3)
	require.Len(t, resources(t, "production", "Microsoft.Network/privateDnsZones/virtualNetworkLinks"), 3)
	require.Empty(t, resources(t, "standard", "Microsoft.Network/privateEndpoints"))
}

func TestOnlyTheTwoUnavoidablePreviewsAreUsed(t *testing.T) {
	for _, snapshot := range slices.Concat(mainSnapshots, workerSnapshots) {
		for _, r := range resources(t, snapshot, "") {
			if !strings.HasSuffix(r.APIVersion, "-preview") {
				continue
			}
			agent := r.Type == "Microsoft.App/managedEnvironments" && snapshot == "telemetry"
			require.True(t, agent || r.Type == "Microsoft.Insights/diagnosticSettings", "%s %s in %s", r.Type, r.APIVersion, snapshot)
		}
	}
}

func TestSnapshotsAreCompleteAndPinned(t *testing.T) {
	parameters, err := filepath.Glob("snapshots/*.bicepparam")
	require.NoError(t, err)
	var names []string
	for _, path := range parameters {
		content := read(t, path)
		require.NotContains(t, content, "readEnvironmentVariable", "%s: an environment variable changes the snapshot", path)
		require.FileExists(t, strings.TrimSuffix(path, ".bicepparam")+".snapshot.json")
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".bicepparam"))
	}
	require.ElementsMatch(t, slices.Concat(mainSnapshots, workerSnapshots), names)
}

// The start date of a budget cannot be changed, so that one which follows the calendar fails every deployment of a later
// month.
func TestNoTemplateFollowsTheCalendar(t *testing.T) {
	for _, path := range templates(t) {
		require.NotContains(t, read(t, path), "utcNow", path)
	}
	require.Contains(t, read(t, "main.bicepparam"), "readEnvironmentVariable('ORDERWORKER_BUDGET_START', '')")
	require.Equal(t, "2026-01-01", at(t, one(t, "production", "Microsoft.Consumption/budgets").Properties, "timePeriod", "startDate"))
}
