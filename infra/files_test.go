package infra_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryParameterHasADefault(t *testing.T) {
	parameter := regexp.MustCompile(`(?m)^param (\w+) [^=\n]+(=?)`)
	for _, path := range []string{"main.bicep", "resources.bicep"} {
		found := parameter.FindAllStringSubmatch(read(t, path), -1)
		require.NotEmpty(t, found, path)
		for _, m := range found {
			require.Equal(t, "=", m[2], "%s: %s has no default", path, m[1])
		}
	}
	for _, path := range []string{"main.bicepparam", "worker.bicepparam"} {
		content := read(t, path)
		require.Equal(t, strings.Count(content, "readEnvironmentVariable("),
			len(regexp.MustCompile(`readEnvironmentVariable\('\w+', '[^']*'\)`).FindAllString(content, -1)), "%s: a variable without a default", path)
	}
}

// azd takes characters in the name of an environment that some resources do not take in theirs.
func TestNameOfAnEnvironmentIsCheckedBeforeAnythingIsMade(t *testing.T) {
	content := read(t, "names.bicep")
	require.Contains(t, content, "filter(['_', '.', '(', ')', ' ', '--'], each => contains(name, each))")
	for _, name := range []string{"resourceGroup: 'rg-${checked('program', programName)}", "managedEnvironment: 'cae-${programName}", "workspace: 'log-${programName}"} {
		require.Contains(t, content, name+"-${checked('environment', environmentName)}'")
	}
}

// A blank after a comma is natural to write, and Azure refuses an address or an object id that begins with one.
func TestListsFromTheEnvironmentMayHaveBlanks(t *testing.T) {
	content := read(t, "main.bicepparam")
	split := regexp.MustCompile(`split\(readEnvironmentVariable\('\w+', ''\), ','\)`)
	require.Len(t, split.FindAllString(content, -1), 4)
	require.Equal(t, 4, strings.Count(content, ", ','), each => trim(each)),\n  each => !empty(each)\n)"))
}

func TestMainPassesEveryParameterOn(t *testing.T) {
	parameter := regexp.MustCompile(`(?m)^param (\w+) `)
	content := read(t, "main.bicep")
	for _, m := range parameter.FindAllStringSubmatch(read(t, "resources.bicep"), -1) {
		require.Contains(t, content, "\n    "+m[1]+": "+m[1]+"\n", "resources.bicep has a parameter that main.bicep does not hand over")
	}
}

func TestDeploymentIntoAnExistingGroupHasTheSameParameters(t *testing.T) {
	assignments := func(path string) string {
		content := read(t, path)
		return content[strings.Index(content, "\nparam "):]
	}
	require.Equal(t, assignments("main.bicepparam"), assignments("resources.bicepparam"))
}

func TestPageKnowsEveryVariableOfTheTemplates(t *testing.T) {
	page := read(t, "../docs/deploy.md")
	used := map[string]bool{}
	for _, path := range []string{"main.bicepparam", "worker.bicepparam"} {
		for _, m := range regexp.MustCompile(`readEnvironmentVariable\('(\w+)'`).FindAllStringSubmatch(read(t, path), -1) {
			used[m[1]] = true
			output := strings.Contains(read(t, "main.bicep"), "output "+m[1]+" ")
			require.True(t, output || strings.Contains(page, m[1]), "%s: the page does not name %s", path, m[1])
		}
	}
	for _, name := range regexp.MustCompile(`ORDERWORKER_[A-Z_]*[A-Z]`).FindAllString(page+read(t, "../docs/operations.md"), -1) {
		require.True(t, used[name], "a page names %s, which no template reads", name)
	}
}

func TestAzdFindsATemplateForTheService(t *testing.T) {
	content := read(t, "../azure.yaml")
	service := regexp.MustCompile(`(?m)^services:\n  (\w+):`).FindStringSubmatch(content)
	require.NotNil(t, service)
	require.FileExists(t, service[1]+".bicep")
	require.FileExists(t, service[1]+".bicepparam")
	require.Contains(t, read(t, service[1]+".bicepparam"), "SERVICE_"+strings.ToUpper(service[1])+"_IMAGE_NAME", "azd names the pushed image so")
	require.NoFileExists(t, "main.parameters.json", "azd takes main.bicepparam; two would differ one day")
}

// Only Go is needed for the tests; the race detector needs a C compiler besides.
func TestSuiteRunsWhereThereIsNoCompilerForC(t *testing.T) {
	for cgo, want := range map[string]string{"0": "go test -shuffle=on ./...", "1": "go test -race -shuffle=on ./..."} {
		c := exec.Command("make", "-n", "-C", "..", "test", "GO=go")
		c.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "MAKEFLAGS=")
		said, err := c.CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip("there is no make here")
		}
		require.NoError(t, err, string(said))
		require.Contains(t, strings.Join(strings.Fields(string(said)), " "), want)
	}
}

func TestDeploymentWithoutAnImageIsRefusedAtOnce(t *testing.T) {
	fallback := regexp.MustCompile(`readEnvironmentVariable\('SERVICE_WORKER_IMAGE_NAME', '([^']+)'\)`).FindStringSubmatch(read(t, "worker.bicepparam"))
	require.NotNil(t, fallback)
	content := read(t, "worker.bicep")
	require.Contains(t, content, "var chosenImage = image == '"+fallback[1]+"'\n  ? fail(")
	require.Len(t, regexp.MustCompile(`(?m)^ +image: (\w+)$`).FindAllString(content, -1), 2)
	require.NotRegexp(t, `(?m)^ +image: image$`, content)
}

func TestDockerfileNeedsNoBuildKitAndGivesAPlainImage(t *testing.T) {
	content := read(t, "../Dockerfile")
	for _, bad := range []string{"--mount", "# syntax", "<<", "apt-get"} {
		require.NotContains(t, content, bad)
	}
	l := limits(t)
	require.Contains(t, content, "\nFROM scratch\n")
	require.Contains(t, content, "\nUSER 65532:65532\n")
	require.Contains(t, content, "\nENTRYPOINT [\"/worker\"]\n", "a shell would swallow SIGTERM")
	require.Contains(t, content, `CMD ["/worker", "healthcheck"]`)
	require.Contains(t, content, "\nARG PACKAGE=./cmd/orderworker\n", "another program is built by an argument")
	require.Contains(t, content, "CGO_ENABLED=0")
	require.Contains(t, content, "GOMEMLIMIT="+l.Sizes["small"].GoMemoryLimit)
	require.Contains(t, content, "\nEXPOSE "+strconv.Itoa(l.Worker.HealthPort)+"\n")
	require.Contains(t, content, "WORKER_HEALTH_ADDRESS=:"+strconv.Itoa(l.Worker.HealthPort))
	require.NotRegexp(t, `(?m)^ARG (TARGET|BUILD)\w+=`, content, "BuildKit takes such a default instead of the platform")

	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))
	require.NotNil(t, version)
	require.Contains(t, content, "ARG GO_VERSION="+version[1]+"\n")
}

// ACR Tasks reads the FROM lines itself before it builds, and knows the forms FROM image and FROM image AS name only.
func TestRegistryCanBuildWhatThePageMakesOfTheDockerfile(t *testing.T) {
	command := regexp.MustCompile(`(?m)^sed 's/(\^FROM [^/]+)/FROM /' Dockerfile > Dockerfile\.acr\naz acr build .* -f Dockerfile\.acr .*$`)
	m := command.FindStringSubmatch(read(t, "../docs/deploy.md"))
	require.NotNil(t, m)
	content := regexp.MustCompile("(?m)"+m[1]).ReplaceAllString(read(t, "../Dockerfile"), "FROM ")
	from := regexp.MustCompile(`(?m)^FROM .*$`).FindAllString(content, -1)
	require.Len(t, from, 2)
	for _, line := range from {
		require.Regexp(t, `^FROM [\w./:\-${}]+( AS \w+)?$`, line)
		require.NotContains(t, line, ":-", "only the plain form of a variable is expanded")
	}
}

// emulatorQueue is a queue in the configuration of the official emulator.
type emulatorQueue struct {
	Name       string
	Properties map[string]any
}

func emulatorQueues(t *testing.T) []emulatorQueue {
	t.Helper()
	var config struct {
		UserConfig struct {
			Namespaces []struct {
				Name   string
				Queues []emulatorQueue
				Topics *[]any
			}
			Logging struct{ Type string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(read(t, "../testenv/config.json")), &config))
	require.Len(t, config.UserConfig.Namespaces, 1, "the emulator takes one namespace")
	namespace := config.UserConfig.Namespaces[0]
	require.Equal(t, "sbemulatorns", namespace.Name, "the only name that the emulator takes")
	require.NotNil(t, namespace.Topics, "the emulator wants the list even when it is empty")
	require.Contains(t, []string{"File", "Console", "File,Console", "Console,File"}, config.UserConfig.Logging.Type)
	return namespace.Queues
}

func TestEmulatorHasTheQueueOfTheTemplates(t *testing.T) {
	l := limits(t)
	queues := emulatorQueues(t)
	i := slices.IndexFunc(queues, func(q emulatorQueue) bool { return q.Name == environment(t, "worker")["SERVICEBUS_QUEUE"] })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, map[string]any{
		"LockDuration":                        l.Queue.LockDuration.ISO8601,
		"MaxDeliveryCount":                    float64(l.Queue.MaxDeliveryCount),
		"DefaultMessageTimeToLive":            l.Emulator.MessageTimeToLive.ISO8601,
		"DuplicateDetectionHistoryTimeWindow": l.Emulator.DuplicateDetectionWindow.ISO8601,
		"DeadLetteringOnMessageExpiration":    true,
		"RequiresDuplicateDetection":          true,
		"RequiresSession":                     false,
		"ForwardTo":                           "",
		"ForwardDeadLetteredMessagesTo":       "",
	}, queues[i].Properties)
}

func TestEmulatorQueuesKeepToItsLimits(t *testing.T) {
	for _, q := range emulatorQueues(t) {
		duration := func(name string) time.Duration { return parseISO(t, q.Properties[name].(string)) }
		within := func(name string, least, most time.Duration) {
			require.GreaterOrEqual(t, duration(name), least, "%s of %s", name, q.Name)
			require.LessOrEqual(t, duration(name), most, "%s of %s", name, q.Name)
		}
		within("DefaultMessageTimeToLive", 5*time.Minute, time.Hour)
		within("DuplicateDetectionHistoryTimeWindow", 5*time.Second, 5*time.Minute)
		within("LockDuration", 5*time.Second, 5*time.Minute)
		require.LessOrEqual(t, q.Properties["MaxDeliveryCount"], 10.0, q.Name)
	}
}

func TestComposeUsesTheSameConfigurationAndListensHereOnly(t *testing.T) {
	content := read(t, "../testenv/compose.yaml")
	require.Contains(t, content, "./config.json:/ServiceBus_Emulator/ConfigFiles/Config.json:ro")
	ports := regexp.MustCompile(`(?m)^      - "([\d.:]+)"$`).FindAllStringSubmatch(content, -1)
	require.NotEmpty(t, ports)
	for _, m := range ports {
		require.True(t, strings.HasPrefix(m[1], "127.0.0.1:"), "%s: the emulators have well-known keys", m[1])
	}
}

func TestOperationsPageKnowsEveryAlertAndEveryReason(t *testing.T) {
	page := read(t, "../docs/operations.md")
	var rules []resource
	for _, kind := range []string{"Microsoft.Insights/metricAlerts", "Microsoft.Insights/scheduledQueryRules"} {
		rules = append(rules, resources(t, "standard", kind)...)
	}
	rules = append(rules, one(t, "worker", "Microsoft.Insights/metricAlerts"))
	require.Greater(t, len(rules), 5)
	for _, rule := range rules {
		require.True(t, strings.Contains(page, "`"+rule.Name+"`"), "the page does not say what to do about %s", rule.Name)
	}
	for _, word := range literals(t, "../worker/reason") {
		if regexp.MustCompile(`^[A-Z]\w+$`).MatchString(word) {
			require.True(t, strings.Contains(page, "`"+word+"`"), "the page does not say what to do about %s", word)
		}
	}
}

func TestPagesNameOnlyFilesThatExist(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	for _, page := range []string{"../docs/deploy.md", "../docs/operations.md"} {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			require.FileExists(t, filepath.Join("../docs", m[1]), page)
		}
	}
}
