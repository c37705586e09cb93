package worker_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// faults says which fault is covered by which test of this package. Package cosmosstore has the faults of the store, and package
// storetest the contract between the two.
var faults = []struct {
	fault string
	tests []string
}{
	{"equal, reordered and different copies", []string{"TestEqualCopiesAreCompletedAndAnOddOneIsDeadLettered"}},
	{"fifty copies at four workers", []string{"TestFiftyCopiesAtFourWorkersMakeOneDocument"}},
	{"unreadable, rejected, never storable", []string{"TestWhatCanNeverBeStoredIsDeadLetteredAtOnce"}},
	{"documents that only the handler can fix", []string{"TestDocumentsThatNoStoreCouldTakeAreTheHandlersFault"}},
	{"stray and missing lines", []string{"TestAnOrderIsStoredWithItsLinesOrNotAtAll"}},
	{"handler panics", []string{"TestAPanicOfTheHandlerIsTheFailureOfItsMessageAlone"}},
	{"handler fails, is slow; store cannot judge", []string{"TestTheLastDeliveryIsDeadLetteredWithTheRealCause"}},
	{"handler asks for a very late retry", []string{"TestALaterRetryThanAMessageMayBeHeldSpendsNoDeliveriesAtOnce", "TestALaterRetryThanAMessageMayBeHeldIsWaitedForByARealClockToo"}},
	{"store fails in passing, answer lost", []string{"TestAPassingFaultIsRetriedInPlace"}},
	{"store down, throttled, hanging, forbidden", []string{"TestAnOutageOfTheStoreCostsNoMessage", "TestAnOutageAtTheLastDeliveryDeadLettersNothing"}},
	{"store or rights come late", []string{"TestAWorkerStartsBeforeItsStoreAndItsRights"}},
	{"handlers ignore their contexts", []string{"TestAWorkerWhoseHandlersNeverReturnIsNotReady"}},
	{"store ignores its context", []string{"TestAStoreThatIgnoresItsContextDoesNotHoldTheWorker"}},
	{"store down while nothing comes", []string{"TestAWorkerWithoutWorkNoticesThatItsStoreIsDown"}},
	{"bad messages in a row", []string{"TestBadMessagesNeverTripTheBreaker"}},
	{"settle refused, unanswered, link lost", []string{"TestASettlementThatFailsOnTheLinkIsMadeByLockToken"}},
	{"settle refused for long, as when throttled", []string{"TestACompletionIsTriedAsLongAsTheLockLasts"}},
	{"settle answered too late", []string{"TestALostAnswerToASettlementIsAnUnknownOutcomeAndHarmless"}},
	{"second settle returns nil", []string{"TestASecondNilIsNeverBelieved", "TestALockLostAfterTheCommitIsHarmless"}},
	{"lock lost before the commit", []string{"TestALockLostBeforeTheCommitCancelsTheHandler"}},
	{"lock ended on arrival, clocks differ", []string{"TestAMessageWithAnEndedLockIsAskedForBeforeAnyWork", "TestAClockThatIsAheadCostsRenewalsAndNothingElse"}},
	{"lock shorter than configured", []string{"TestALockShorterThanConfiguredIsLearnedFromTheMessage"}},
	{"dead-letter texts too long, refused", []string{"TestDeadLetterTextsAreCutToWhatTheBrokerTakes", "TestADeadLetterThatIsRefusedIsTriedBareAndThenLeftToTheBroker"}},
	{"connection, session or link lost while working", []string{"TestTheConnectionDiesWhileAHandlerWorks", "TestTheManagementLinkDiesWhileAHandlerWorks"}},
	{"receiver detached beyond repair", []string{"TestAReceiverThatIsBeyondRepairIsReplaced"}},
	{"management link beyond repair", []string{"TestAManagementLinkBeyondRepairIsReplaced", "TestAManagementLinkBeyondRepairIsFoundAlsoWhenNothingNeedsIt"}},
	{"broker flaps, needs sessions, is full", []string{"TestABrokerThatFlapsIsNotHammered"}},
	{"disabled, missing, forbidden, tokens refused", []string{"TestADisabledQueueIsWaitedFor"}},
	{"broker silent, deaf but green", []string{"TestABrokerThatFallsSilentIsNoticed", "TestAWorkerThatIsDeafIsNotReady"}},
	{"another replica holds the only message", []string{"TestAWorkerIsNotDeafBecauseAnotherHoldsTheOnlyMessage"}},
	{"broker refuses connections", []string{"TestABrokerThatRefusesConnectionsShowsWithinTenSeconds"}},
	{"client panics over properties", []string{"TestAMessageThatMakesTheClientPanicTakesNoOtherDown"}},
	{"messages that the client cannot decode", []string{"TestAMessageThatTheClientCannotReadTakesNoOtherDown"}},
	{"queue that cannot be looked at", []string{"TestAQueueThatCannotBeLookedAtIsReceivedFromAllTheSame"}},
	{"broker gone while nothing is received", []string{"TestABrokerThatDiesWhileNothingIsReceivedShows"}},
	{"client calls that do not return", []string{"TestACallThatIgnoresItsContextIsLeftBehind"}},
	{"idle detach, days of token refresh", []string{"TestAnIdleReceiverIsDetachedAndNobodyMinds", "TestTokensAreRefreshedForDays"}},
	{"stop in any state, second signal", []string{"TestAStopInAnyStateEndsInTimeAndGivesBackWhatCannotFinish"}},
	{"stop while messages wait, slow network", []string{"TestAStopCostsAMessageAtMostOneDelivery"}},
	{"stop while locks are renewed", []string{"TestRenewalsThatAStopCutsShortSayNothingOfTheLink"}},
	{"rolling restarts", []string{"TestTenRollingRestartsUnderLoadCostAMessageADeliveryEachAtMost"}},
	{"credit left out", []string{"TestNoCreditIsLeftOutWhileNothingIsReceived"}},
	{"an observer that panics", []string{"TestAnObserverThatPanicsCostsNoMessage"}},
	{"a program that is put together wrongly", []string{"TestWhatIsMissingIsSaidBeforeTheFirstMessage", "TestABrokerSaysWhatIsWrongWithItsClients"}},
	{"hours of small faults", []string{"TestHoursOfSmallFaultsLeaveNothingBehind"}},
}

func TestEveryFaultHasTheTestsThatAreNamed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				found[f.Name.Name] = true
			}
		}
	}
	for _, f := range faults {
		require.NotEmpty(t, f.tests, f.fault)
		for _, name := range f.tests {
			require.True(t, found[name], "%s: there is no test %s", f.fault, name)
		}
	}
}
