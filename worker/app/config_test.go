package app

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/cosmosstore"
	"github.com/orderworker/orderworker/worker"
	"github.com/orderworker/orderworker/worker/admission"
)

const (
	emulatorString = "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey=c2VjcmV0;UseDevelopmentEmulator=true"
	azureString    = "Endpoint=sb://shop.servicebus.windows.net;SharedAccessKeyName=k;SharedAccessKey=c2VjcmV0"
)

func settle(t *testing.T, environ []string, args ...string) (config, error) {
	t.Helper()
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	bind(flags, new(config).settings())
	require.NoError(t, flags.Parse(args))
	return resolve(system{program: testProgram(), environ: environ}, flags)
}

func TestDefaultsAreEnoughBesidesTheTwoServices(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"})
	require.NoError(t, err)
	require.Equal(t, "orders", c.queue)
	require.Equal(t, 16, c.worker.Concurrency)
	require.Equal(t, time.Minute, c.worker.LockDuration)
	require.Equal(t, unknownWindow, c.duplicateWindow)
	require.Equal(t, "127.0.0.1:8080", c.healthAddress)
}

func TestAFlagOverridesItsVariable(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_CONNECTION_STRING=" + emulatorString, "COSMOS_ENDPOINT=http://127.0.0.1:8081", "COSMOS_KEY=a2V5", "SERVICEBUS_QUEUE=a", "WORKER_LOCK_DURATION=PT30S"}, "--queue", "b")
	require.NoError(t, err)
	require.Equal(t, "b", c.queue)
	require.Equal(t, 30*time.Second, c.worker.LockDuration)
}

func TestEveryFaultIsReportedAtOnceWithItsFix(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{
		"SERVICEBUS_CONNECTION_STRING=" + azureString, "COSMOS_ENDPOINT=http://shop.documents.azure.com", "WORKER_CONCURENCY=4",
		"WORKER_MAX_DELIVERY_COUNT=none", "WORKER_LOCK_DURATION=1ms", "WORKER_HASH_IGNORE=sentAt", "WORKER_LOG_LEVEL=loud",
	}, "--concurrency", "0")
	require.Error(t, err)
	for _, part := range []string{
		"SERVICEBUS_CONNECTION_STRING: connection strings are only for an emulator on this machine",
		"COSMOS_ENDPOINT: endpoint shop.documents.azure.com would send credentials unencrypted: use https",
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
		{"two ways to reach the broker", "SERVICEBUS_NAMESPACE_FQDN: this and SERVICEBUS_CONNECTION_STRING are both set", []string{"SERVICEBUS_CONNECTION_STRING=" + emulatorString}},
		{"an account key off this machine", "COSMOS_KEY: account keys are only", []string{"COSMOS_KEY=a2V5"}},
		{"a scheme in the namespace", "without a scheme", []string{"SERVICEBUS_NAMESPACE_FQDN=sb://shop.servicebus.windows.net"}},
		{"two selections for the hash", "WORKER_HASH_IGNORE: this and WORKER_HASH_ONLY are both set", []string{"WORKER_HASH_IGNORE=/a", "WORKER_HASH_ONLY=/b"}},
		{"a selection of bytes", "WORKER_HASH_FORM: bytes", []string{"WORKER_HASH_IGNORE=/a", "WORKER_HASH_FORM=bytes"}},
		{"a health address without a port", "WORKER_HEALTH_ADDRESS", []string{"WORKER_HEALTH_ADDRESS=localhost"}},
		{"a subscription", "SERVICEBUS_QUEUE: \"shop/Subscriptions/orders\" is a subscription of a topic", []string{"SERVICEBUS_QUEUE=shop/Subscriptions/orders"}},
		{"a dead-letter queue", "SERVICEBUS_QUEUE: \"orders/$DeadLetterQueue\" is a part of a queue", []string{"SERVICEBUS_QUEUE=orders/$DeadLetterQueue"}},
		{"no broker", "SERVICEBUS_NAMESPACE_FQDN: not set", []string{"SERVICEBUS_NAMESPACE_FQDN="}},
		{"no account", "COSMOS_ENDPOINT: not set", []string{"COSMOS_ENDPOINT="}},
		{"an inbox record's lifetime without inbox records", "WORKER_INBOX_RECORD_TTL", []string{"WORKER_INBOX_RECORD_TTL=24h"}},
		{"an unknown key source", "WORKER_KEY", []string{"WORKER_KEY=correlation-id"}},
		{"an account key that is no base64", "COSMOS_KEY: the account key is not base64", []string{"COSMOS_ENDPOINT=http://127.0.0.1:8081", "COSMOS_KEY=wrong"}},
		{"a consumer with a long name", "WORKER_CONSUMER: consumer has 80 bytes; at most 64", []string{"WORKER_CONSUMER=" + strings.Repeat("x", 80)}},
		{"a lock duration that no queue has", "WORKER_LOCK_DURATION: 10m is not from 5s to 5m0s", []string{"WORKER_LOCK_DURATION=10m"}},
		{"a lock duration below the least", "WORKER_LOCK_DURATION: 1s is not from 5s to 5m0s", []string{"WORKER_LOCK_DURATION=1s"}},
		{"a database with a slash", `COSMOS_DATABASE: database "a/b" holds a character`, []string{"COSMOS_DATABASE=a/b"}},
		{"a container with a slash", `COSMOS_CONTAINER: container "a/b" holds a character`, []string{"COSMOS_CONTAINER=a/b"}},
		{"a selection inside what is ignored", "WORKER_HASH_IGNORE:", []string{"WORKER_HASH_IGNORE=/a~2"}},
		{"an inbox record's lifetime in parts of a second", "WORKER_INBOX_RECORD_TTL: inbox record TTL", []string{"WORKER_INBOX_RECORD=true", "WORKER_INBOX_RECORD_TTL=60.5s"}},
		{"an endpoint with a path", "COSMOS_ENDPOINT: endpoint must be scheme, host and port alone", []string{"COSMOS_ENDPOINT=https://shop.documents.azure.com/orders"}},
		{"waits that shrink", "WORKER_RETRY_BASE: retry waits are 20s to 15s", []string{"WORKER_RETRY_BASE=20s"}},
		{"a hold of two days", "WORKER_RETRY_HOLD: retry hold is 48h0m0s", []string{"WORKER_RETRY_HOLD=48h"}},
		{"a commit longer than half the lock", "WORKER_STORE_TIMEOUT: store timeout is 40s", []string{"WORKER_STORE_TIMEOUT=40s"}},
		{"probes that shrink", "WORKER_BREAKER_PROBE_BASE: breaker probe waits are 1m0s to 30s", []string{"WORKER_BREAKER_PROBE_BASE=1m"}},
		{"a watchdog that barks at once", "WORKER_WATCHDOG_NOT_RECEIVING: watchdog not receiving is 1s", []string{"WORKER_WATCHDOG_NOT_RECEIVING=1s"}},
		{"no tries", "WORKER_RETRY_ATTEMPTS: \"0\" is not a whole number from 1 to 100", []string{"WORKER_RETRY_ATTEMPTS=0"}},
		{"no time to drain", "WORKER_DRAIN_TIMEOUT: 0s is not from 100ms to 24h0m0s", []string{"WORKER_DRAIN_TIMEOUT=0s"}},
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

func TestTwoFaultsOfOneSelectionAreBothReported(t *testing.T) {
	t.Parallel()
	_, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com", "WORKER_HASH_IGNORE=/a", "WORKER_HASH_ONLY=/b~2"})
	require.ErrorContains(t, err, "2 place(s)")
	require.ErrorContains(t, err, "WORKER_HASH_IGNORE: this and WORKER_HASH_ONLY are both set")
	require.ErrorContains(t, err, "WORKER_HASH_ONLY: ")
}

func TestRetrySettingsReachTheWorker(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com",
		"WORKER_RETRY_ATTEMPTS=7", "WORKER_RETRY_BASE=2s", "WORKER_RETRY_MAX=20s", "WORKER_RETRY_HOLD=3m", "WORKER_RETRY_SPREAD=1h", "WORKER_STORE_TIMEOUT=4s",
		"WORKER_BREAKER_FAILURES=9", "WORKER_BREAKER_PROBE_BASE=3s", "WORKER_BREAKER_PROBE_MAX=40s",
		"WORKER_WATCHDOG_SILENCE=30s", "WORKER_WATCHDOG_STUCK=5s", "WORKER_WATCHDOG_NOT_RECEIVING=9m"})
	require.NoError(t, err)
	w := c.workerConfig(&telemetry{}, nil)
	require.Equal(t, worker.RetryConfig{Attempts: 7, Base: 2 * time.Second, Max: 20 * time.Second, HoldFor: 3 * time.Minute, Spread: time.Hour}, w.Retry)
	require.Equal(t, worker.BreakerConfig{Failures: 9, ProbeBase: 3 * time.Second, ProbeMax: 40 * time.Second}, w.Breaker)
	require.Equal(t, worker.WatchdogConfig{Silence: 30 * time.Second, Stuck: 5 * time.Second, NotReceiving: 9 * time.Minute}, w.Watchdog)
	require.Equal(t, 4*time.Second, w.StoreTimeout)
}

// TestTheDefaultsOfTheSettingsAreThoseOfTheLibrary holds a program that sets nothing against a library user who sets nothing.
func TestTheDefaultsOfTheSettingsAreThoseOfTheLibrary(t *testing.T) {
	t.Parallel()
	c, err := settle(t, []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"})
	require.NoError(t, err)
	require.Equal(t, worker.RetryConfig{Attempts: 4, Base: 500 * time.Millisecond, Max: 15 * time.Second, HoldFor: 10 * time.Minute, Spread: 2 * time.Hour}, c.worker.Retry)
	require.Equal(t, worker.BreakerConfig{Failures: 5, ProbeBase: time.Second, ProbeMax: 30 * time.Second}, c.worker.Breaker)
	require.Equal(t, worker.WatchdogConfig{Silence: 15 * time.Second, Stuck: 10 * time.Second}, c.worker.Watchdog)
}

func TestEveryFaultOfTheWorkAndOfTheStoreNamesASetting(t *testing.T) {
	t.Parallel()
	wrong := worker.Config{
		Concurrency: -1, LockDuration: -1, MaxDeliveryCount: -1, HandlerTimeout: -1, StoreTimeout: -1, DrainTimeout: -1,
		Retry:     worker.RetryConfig{Attempts: -1, Base: -1, HoldFor: -1},
		Breaker:   worker.BreakerConfig{Failures: -1, ProbeBase: -1},
		Watchdog:  worker.WatchdogConfig{Silence: -1, Stuck: -1, NotReceiving: -2},
		Admission: admission.Config{Consumer: " x", Form: "bytes", Ignore: []string{"/a"}, Only: []string{"b", "/a/b"}},
	}
	faults := named(errors.Join(wrong.Validate(), cosmosstore.Options{Key: "x", Database: "a/b", InboxRecordTTL: -1, Lifetime: cosmosstore.Lifetime{Lock: -1}}.Validate()))
	require.Greater(t, len(faults), 20)
	for _, f := range faults {
		require.Regexp(t, `^(WORKER|COSMOS)_[A-Z_]+: `, f.Error())
		name, _, _ := strings.Cut(f.Error(), ":")
		require.True(t, slices.ContainsFunc(new(config).settings(), func(s setting) bool { return s.env == name }), name)
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
	require.ErrorContains(t, err, "WORKER_LOCK_DURATION: 1h is not from 5s to 5m0s")
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
	require.ErrorContains(t, err, `--consumer: consumer " x" begins or ends with a blank`)
	require.ErrorContains(t, err, "--lock-duration: 1h is not from 5s to 5m0s")
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
			require.Equal(t, tt.meant, misspelt(tt.variable))
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
		require.ErrorContains(t, err, name+": the value is in quotes")
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

func TestAConnectionStringInThePlaceOfTheQueueIsNotRepeated(t *testing.T) {
	code, stdout, stderr := execute(t, []string{"SERVICEBUS_QUEUE=Endpoint=sb://x;SharedAccessKey=SUPERSECRET1"}, "", "check")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "SERVICEBUS_QUEUE: this is a connection string")
	require.NotContains(t, stdout+stderr, "SUPERSECRET1")
}

func TestASubscriptionIsGivenWhole(t *testing.T) {
	t.Parallel()
	base := []string{"SERVICEBUS_NAMESPACE_FQDN=shop.servicebus.windows.net", "COSMOS_ENDPOINT=https://shop.documents.azure.com"}
	for name, tt := range map[string]struct{ settings, want string }{
		"a topic without a subscription": {"SERVICEBUS_TOPIC=events", "SERVICEBUS_SUBSCRIPTION: not set"},
		"a subscription without a topic": {"SERVICEBUS_SUBSCRIPTION=billing", "SERVICEBUS_TOPIC: not set"},
		"a queue beside a topic":         {"SERVICEBUS_TOPIC=events SERVICEBUS_SUBSCRIPTION=billing SERVICEBUS_QUEUE=other", "SERVICEBUS_QUEUE: this and SERVICEBUS_TOPIC"},
	} {
		_, err := settle(t, append(slices.Clone(base), strings.Fields(tt.settings)...))
		require.ErrorContains(t, err, tt.want, name)
	}
	c, err := settle(t, append(slices.Clone(base), "SERVICEBUS_TOPIC=events", "SERVICEBUS_SUBSCRIPTION=billing"))
	require.NoError(t, err)
	require.Equal(t, []string{"events/Subscriptions/billing", "billing"}, []string{c.queue, c.worker.Admission.Consumer})
	c, err = settle(t, append(slices.Clone(base), "SERVICEBUS_TOPIC=events", "SERVICEBUS_SUBSCRIPTION=billing", "WORKER_CONSUMER=ledger"))
	require.NoError(t, err)
	require.Equal(t, "ledger", c.worker.Admission.Consumer)
}
