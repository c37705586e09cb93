package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

const (
	emulatorString = "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true"
	azureString    = "Endpoint=sb://shop.servicebus.windows.net;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0"
)

func settle(t *testing.T, environ []string, args ...string) (config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bind(flags)
	require.NoError(t, flags.Parse(args))
	return resolve(system{program: testProgram(), environ: environ}, flags)
}

func TestDefaultsAreEnoughBesidesTheTwoServices(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"})
	require.NoError(t, err)
	require.Equal(t, "orders", c.queue)
	require.Equal(t, 16, c.concurrency)
	require.Equal(t, time.Minute, c.lockDuration)
	require.Equal(t, unknownWindow, c.duplicateWindow)
	require.Equal(t, "127.0.0.1:8080", c.healthAddress)
}

func TestAFlagOverridesItsVariable(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_CONNECTION_STRING=" + emulatorString, "COSMOS_ENDPOINT=http://127.0.0.1:8081", "COSMOS_KEY=a2V5", "SERVICEBUS_QUEUE=a", "WORKER_LOCK_DURATION=PT30S"}, "--queue", "b")
	require.NoError(t, err)
	require.Equal(t, "b", c.queue)
	require.Equal(t, 30*time.Second, c.lockDuration)
}

func TestEveryFaultIsReportedAtOnceWithItsCure(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{
		"SERVICEBUS_CONNECTION_STRING=" + azureString, "COSMOS_ENDPOINT=http://shop.documents.azure.com", "WORKER_CONCURENCY=4",
		"WORKER_MAX_DELIVERY_COUNT=none", "WORKER_LOCK_DURATION=1ms", "WORKER_HASH_IGNORE=sentAt", "WORKER_LOG_LEVEL=loud",
	}, "--concurrency", "0")
	require.Error(t, err)
	for _, part := range []string{
		"SERVICEBUS_CONNECTION_STRING: connection strings are only for an emulator on this machine",
		"COSMOS_ENDPOINT: plain http is only for this machine",
		"WORKER_CONCURENCY: there is no such setting; did you mean WORKER_CONCURRENCY?",
		"--concurrency:", "WORKER_MAX_DELIVERY_COUNT:", "WORKER_LOCK_DURATION:", "WORKER_HASH_IGNORE:", "WORKER_LOG_LEVEL:",
	} {
		require.ErrorContains(t, err, part)
	}
	require.NotContains(t, err.Error(), "c2VjcmV0", "a key never shows")
}

func TestWhatIsRefusedBetweenSettings(t *testing.T) {
	t.Parallel()
	good := []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"}
	for _, tt := range []struct {
		name, want string
		more       []string
	}{
		{"two ways to reach the broker", "both are set", []string{"SERVICEBUS_CONNECTION_STRING=" + emulatorString}},
		{"an account key off this machine", "COSMOS_KEY: account keys are only", []string{"COSMOS_KEY=a2V5"}},
		{"a scheme in the namespace", "without a scheme", []string{"SERVICEBUS_NAMESPACE_FQDN=sb://shop.servicebus.windows.net"}},
		{"two selections for the hash", "WORKER_HASH_IGNORE and WORKER_HASH_ONLY", []string{"WORKER_HASH_IGNORE=/a", "WORKER_HASH_ONLY=/b"}},
		{"a selection of bytes", "WORKER_HASH_FORM: bytes", []string{"WORKER_HASH_IGNORE=/a", "WORKER_HASH_FORM=bytes"}},
		{"a health address without a port", "WORKER_HEALTH_ADDRESS", []string{"WORKER_HEALTH_ADDRESS=localhost"}},
		{"a subscription", "SERVICEBUS_QUEUE: \"shop/Subscriptions/orders\" is a subscription of a topic", []string{"SERVICEBUS_QUEUE=shop/Subscriptions/orders"}},
		{"a dead-letter queue", "SERVICEBUS_QUEUE: \"orders/$DeadLetterQueue\" is a part of a queue", []string{"SERVICEBUS_QUEUE=orders/$DeadLetterQueue"}},
		{"no broker", "SERVICEBUS_NAMESPACE_FQDN: not set", []string{"SERVICEBUS_NAMESPACE_FQDN="}},
		{"no account", "COSMOS_ENDPOINT: not set", []string{"COSMOS_ENDPOINT="}},
		{"a marker's lifetime without markers", "WORKER_INBOX_RECORD_TTL", []string{"WORKER_INBOX_RECORD_TTL=24h"}},
		{"an unknown key source", "WORKER_KEY", []string{"WORKER_KEY=correlation-id"}},
		{"an account key that is no base64", "COSMOS_KEY: not base64", []string{"COSMOS_ENDPOINT=http://127.0.0.1:8081", "COSMOS_KEY=wrong"}},
		{"a consumer with a long name", "WORKER_CONSUMER: has 80 bytes; at most 64", []string{"WORKER_CONSUMER=" + strings.Repeat("x", 80)}},
		{"a lock duration that no queue has", "WORKER_LOCK_DURATION: 10m is more than 5m", []string{"WORKER_LOCK_DURATION=10m"}},
		{"a lock duration below the least", "WORKER_LOCK_DURATION: 1s is less than 5s", []string{"WORKER_LOCK_DURATION=1s"}},
		{"a database with a slash", `COSMOS_DATABASE: "a/b" holds a character`, []string{"COSMOS_DATABASE=a/b"}},
		{"a container with a slash", `COSMOS_CONTAINER: "a/b" holds a character`, []string{"COSMOS_CONTAINER=a/b"}},
		{"a selection inside what is ignored", "WORKER_HASH_IGNORE:", []string{"WORKER_HASH_IGNORE=/a~2"}},
		{"a marker's lifetime in parts of a second", "WORKER_INBOX_RECORD_TTL: 1m0.5s is not in whole seconds", []string{"WORKER_INBOX_RECORD=true", "WORKER_INBOX_RECORD_TTL=60.5s"}},
		{"an endpoint with a path", "COSMOS_ENDPOINT: must be scheme, host and port alone", []string{"COSMOS_ENDPOINT=https://shop.documents.azure.com/orders"}},
		{"no time to drain", "WORKER_DRAIN_TIMEOUT: 0s is less than 100ms", []string{"WORKER_DRAIN_TIMEOUT=0s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := settle(t, append(good[:len(good):len(good)], tt.more...))
			require.ErrorContains(t, err, tt.want)
			require.Contains(t, err.Error(), "1 place(s)", "each fault is reported once")
			e, ok := errors.AsType[*exitError](err)
			require.True(t, ok)
			require.Equal(t, exitUsage, e.code)
		})
	}
}

func TestAQueueWithoutANameIsRefused(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"}, "--queue", "")
	require.ErrorContains(t, err, "--queue: empty")
}

func TestAnIdentityThatThereIsNotIsReportedWithTheOthers(t *testing.T) {
	t.Setenv("AZURE_TOKEN_CREDENTIALS", "nobody")
	_, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com", "WORKER_LOCK_DURATION=1h"})
	require.ErrorContains(t, err, "AZURE_TOKEN_CREDENTIALS: no identity can be used")
	require.ErrorContains(t, err, "WORKER_LOCK_DURATION: 1h is more than 5m")
}

func TestShortTimesAreNoFault(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com",
		"WORKER_LOCK_DURATION=5s", "WORKER_HANDLER_TIMEOUT=1s"})
	require.NoError(t, err)
}

func TestAFaultIsReportedByTheNameUnderWhichTheValueWasGiven(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com", "WORKER_CONSUMER=x"},
		"--consumer", " x", "--lock-duration", "1h")
	require.ErrorContains(t, err, `--consumer: " x" begins or ends with a blank`)
	require.ErrorContains(t, err, "--lock-duration: 1h is more than 5m")
}

func TestVariablesThatLookLikeOursAreRefusedAndOthersAreLeftAlone(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, variable, meant string }{
		{"a letter left out", "SERVICEBUS_QUEU", "SERVICEBUS_QUEUE"},
		{"a letter left out of the account", "COSMOS_ENPOINT", "COSMOS_ENDPOINT"},
		{"a letter left out of the first word", "SERVICBUS_QUEUE", "SERVICEBUS_QUEUE"},
		{"two letters swapped", "WORKER_KYE", "WORKER_KEY"},
		{"lower case", "servicebus_queue", "SERVICEBUS_QUEUE"},
		{"lower case of our own", "worker_lock_duration", "WORKER_LOCK_DURATION"},
		{"dashes", "WORKER-LOCK-DURATION", "WORKER_LOCK_DURATION"},
		{"three letters wrong", "WORKER_CONCURENCIS", "WORKER_CONCURRENCY"},
		{"another last word", "WORKER_LOCK_SECONDS", "WORKER_LOCK_DURATION"},
		{"another last word after two", "WORKER_MAX_DELIVERIES", "WORKER_MAX_DELIVERY_COUNT"},
		{"a name for this process", "WORKER_NAME", ""},
		{"a number for this process", "WORKER_ID", ""},
		{"a sort of process", "WORKER_TYPE", ""},
		{"another program's broker", "SERVICEBUS_TOPIC", ""},
		{"another program's account", "COSMOS_REGION", ""},
		{"a setting", "WORKER_KEY", ""},
		{"nothing like it", "PATH", ""},
		{"a long one", strings.Repeat("WORKER_", 1000), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := misspelt(tt.variable, settings())
			if tt.meant == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tt.variable+": there is no such setting; did you mean "+tt.meant+"?")
		})
	}
}

func TestVariablesThatKubernetesGivesForAServiceAreLeftAlone(t *testing.T) {
	t.Parallel()
	services := []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"}
	of := func(name string) []string {
		port := name + "_PORT"
		return []string{name + "_SERVICE_HOST=10.0.0.1", name + "_SERVICE_PORT=8080", name + "_SERVICE_PORT_HTTP=8080", port + "=tcp://10.0.0.1:8080",
			port + "_8080_TCP=tcp://10.0.0.1:8080", port + "_8080_TCP_ADDR=10.0.0.1", port + "_8080_TCP_PORT=8080", port + "_8080_TCP_PROTO=tcp"}
	}
	_, err := settle(t, slices.Concat(services, of("WORKER"), of("WORKER_HEALTH"), of("WORKER_PORT_LOG"), of("WORKER_LOG"), of("SERVICEBUS")))
	require.NoError(t, err)
	_, err = settle(t, append(services, "WORKER_HEALTH_PORT=8080"))
	require.ErrorContains(t, err, "WORKER_HEALTH_PORT: there is no such setting", "without a service of that name it is a slip of the pen")
}

func TestQuotesAndLineBreaksAroundAValueAreRefused(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{
		`SERVICEBUS_NAMESPACE_FQDN="shop.servicebus.windows.net"`, "COSMOS_ENDPOINT='https://shop.documents.azure.com'", "SERVICEBUS_QUEUE=orders\r",
		`WORKER_CONSUMER="billing"`, `COSMOS_KEY="c2VjcmV0"`, `WORKER_HASH_IGNORE="/sentAt"`, `COSMOS_DATABASE="`,
	})
	for _, name := range []string{"SERVICEBUS_NAMESPACE_FQDN", "COSMOS_ENDPOINT", "WORKER_CONSUMER", "COSMOS_KEY", "WORKER_HASH_IGNORE"} {
		require.ErrorContains(t, err, name+": the value stands in quotes")
	}
	require.ErrorContains(t, err, `SERVICEBUS_QUEUE: "orders\r" begins or ends with a blank or a line break`)
	require.NotContains(t, err.Error(), "c2VjcmV0", "a key never shows")
}

func TestDistancesAreCountedInSteps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "adc", 1}, {"kitten", "sitting", 3}, {"abcd", "badc", 2}} {
		require.Equal(t, tt.want, editDistance(tt.a, tt.b), "%s %s", tt.a, tt.b)
		require.Equal(t, tt.want, editDistance(tt.b, tt.a), "%s %s", tt.b, tt.a)
	}
}

func TestConnectionStringsAreForThisMachine(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value string
		allow       string
		want        string
	}{
		{"an emulator here", emulatorString, "false", ""},
		{"an emulator by name", "Endpoint=sb://localhost;SharedAccessKeyName=k;SharedAccessKey=s;UseDevelopmentEmulator=true;", "false", ""},
		{"Azure, not allowed", azureString, "false", "WORKER_ALLOW_KEYS"},
		{"Azure, allowed", azureString, "true", ""},
		{"no TLS elsewhere, although allowed", azureString + ";UseDevelopmentEmulator=true", "true", "switches TLS off"},
		{"another queue", emulatorString + ";EntityPath=invoices", "false", "EntityPath"},
		{"no key", "Endpoint=sb://127.0.0.1", "false", "SharedAccessKeyName"},
		{"no text at all", "hello", "false", "Endpoint=sb://"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := settle(t, []string{"SERVICEBUS_CONNECTION_STRING=" + tt.value, "WORKER_ALLOW_KEYS=" + tt.allow, "COSMOS_ENDPOINT=https://a.documents.azure.com"})
			if tt.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, tt.want)
		})
	}
}
