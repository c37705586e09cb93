package cosmosstore_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Which fault is covered by which test:
//
//   - Statuses, substatuses and failures of the transport, on every operation: TestClassifyEveryStatusOnEveryOperation,
//     TestClassifyEveryFailureOfTheTransport, TestEveryStatusThatStopsTheStoreBlamesNoMessage.
//   - A write whose answer is lost, over HTTP/1, HTTP/2 and in process: TestAWriteWhoseAnswerIsLostIsRecognisedAsOwn,
//     TestOverSocketsALostAnswerIsRecognisedAsOwn, TestAWriteThatStaysAmbiguousIsReportedAsSuch,
//     TestALostAnswerCostsOneRepeatedWriteAndNoMore.
//   - Conflicts: TestEveryPathToAConflictEndsInARecordToBeJudged, TestFiftyCopiesAtOnceMakeOneOrder,
//     TestWhateverIsStoredIsReadAndNeverTakenForEqual.
//   - A conflict without a document: TestAConflictWithNothingToReadIsTriedOnceMoreAndThenGivenBack,
//     TestAConflictOnAUniqueKeyIsGivenBackWithItsOwnReason, TestADocumentThatExpiredBeforeItsConflictWasReadIsCreatedAgain,
//     TestALaggingReplicaIsNotTakenForAnAbsentDocument.
//   - Reads that show nothing, of a region far behind or of a proxy that answers in place of the account, while writes go on:
//     TestReadsThatShowNothingHideNoDuplicate, TestADocumentThatCanBeReadInNoWayIsTheStoresFault,
//     TestAnAnswerOfThePrimaryThatStopsTheStoreBlamesNoMessage, TestAfterALostAnswerADocumentThatNoReadShowsIsRecognisedAsOwn,
//     TestASessionTokenThatAGatewayDoesNotUnderstandIsLeftOut, TestHeadersWithoutSenseChangeNoJudgement, TestAPartCountsAsMissingOnlyWhenItIsSaidToBeAbsent,
//     TestALineBlocksOnlyWhenItsOrderIsKnownNotToBeStored, TestWhatIsStoredIsFoundHoweverFarReplicasAreBehind, TestAStoreThatShowsWhatDoesNotExistIsNotReady.
//   - Batches of any shape, and emulators that do not keep them atomic: TestTheVerdictOnABatchComesFromItsOperations,
//     FuzzJudgeBatch, TestABatchReplyOfAnyShapeOnAnEmptyStore, TestABatchThatIsNotAtomicIsNeverCalledADuplicate,
//     TestALineIsSaidToBlockOnlyWhenItDoes, TestAnOrderThatLostALineIsNoDuplicate,
//     TestAListOfPartsThatNobodyCommittedIsNotReadToItsEnd.
//   - Limits: TestWhatTheServiceWouldRefuseIsRefusedBeforeItIsSent, TestAServiceThatIsStricterThanTheEstimateDecides.
//   - Throttling, contention, splits: TestAHintOfTheStoreIsPassedOnAndNotSleptThrough, TestAContendedCreateIsRepeatedShortly,
//     TestAWriteThroughAPartitionSplitSucceeds, TestABatchThatIsContendedOrThrottledForAWhileIsCommitted.
//   - Writes that are refused while reads are answered: TestAStoreThatAnswersReadsAndRefusesWritesBlamesNoMessage,
//     TestAWriteThatIsRefusedWhileProbesAreAnsweredIsLeftToTheEngine.
//   - One message that is refused while others are not, and the reverse: TestAMessageThatAloneIsRefusedDoesNotBlameTheStore,
//     TestCredentialsThatAreRefusedEverywhereBlameNoMessage, TestRightsThatAreMissingAndArrive.
//   - The account read: TestAFailedFirstAccountReadPoisonsNothing, TestAnAccountReadThatHangsHoldsNoCallLongerThanItsTime,
//     TestAnAccountReadThatHangsLaterDelaysNothing, TestAReplyThatIsNotTheContainerSaysNothingOfIt,
//     TestMultiRegionWritesThatAreSwitchedOnLaterStopTheWrites, TestNoTryOfAWriteInFlightGoesToAnAccountWithSeveralWriteRegions.
//   - A stored record of a newer version: TestARecordOfAnUnknownFormatIsUnreadable.
//   - A record that cannot be read beside a document that can: TestAnInboxRecordThatCannotBeReadIsDecidedByItsDocument.
//   - Containers that cannot hold a message: TestAContainerThatCannotHoldTheTypesIsRefusedAtTheStart,
//     TestAMessageThatDoesNotFitTheContainerHoldsTheStore, TestAContainerThatIsReplacedByOneThatFitsNoMessageHoldsTheStore.
//   - Odd keys, rounded numbers, members that a sender chose: TestEveryOddKeyIsStoredAndReadBackOnItsConflict,
//     TestNumbersThatADoubleWouldRoundComeBackAsTheyWereSent, TestASenderCanOverrideNothing.
//   - Retention: TestAContainerThatDoesNotFitIsRefused, TestACheckSaysWhatIsWrongAndWhatToDo,
//     TestInboxRecordsThatAreForgottenTooEarlyAreToldOfAtTheStart, TestAFirstDocumentThatExpiresBeforeItsMessageCanNoLongerComeBackIsToldOfOnce,
//     TestAnInboxRecordThatHasExpiredLetsNothingBeAppliedTwice; and a container that is changed while the store is busy:
//     TestAContainerThatIsChangedUnderABusyStoreStopsTheWrites, TestReadingTheContainerAgainDelaysAndFailsNoWrite.
//   - All at once, by seeds: TestRandomFaultsLoseAndDoubleNothing; and the contract of every store:
//     TestTheStoreKeepsTheContract.
func TestEveryTestOfTheListExists(t *testing.T) {
	list, err := os.ReadFile("doc_test.go")
	require.NoError(t, err)
	files, err := filepath.Glob("*_test.go")
	require.NoError(t, err)
	var code strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		code.Write(text)
	}
	names := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w+`).FindAllString(string(list), -1)
	require.Greater(t, len(names), 50)
	for _, name := range names {
		require.True(t, strings.Contains(code.String(), "func "+name+"("), "%s does not exist", name)
	}
}
