import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/** Counts checks, and prints one line for each that fails and one at the end. */
final class Checks {
    interface Run {
        void run() throws Exception;
    }

    private final String wanted;
    private final List<String> failed = new ArrayList<>();
    private int passed;

    Checks(String[] args) {
        wanted = args.length > 0 ? args[0] : "";
    }

    void check(String name, Run run) {
        if (!name.contains(wanted)) {
            return;
        }
        try {
            run.run();
            passed++;
        } catch (Throwable e) {
            failed.add(name);
            String text = String.valueOf(e.getMessage());
            System.out.println("FAILED " + name + ": " + e.getClass().getSimpleName() + ": " + text.substring(0, Math.min(400, text.length())));
        }
    }

    static void equal(Object got, Object want) {
        if (!Objects.equals(got, want)) {
            throw new AssertionError("got " + got + ", not " + want);
        }
    }

    /** Returns the error of a call that must fail. */
    static <T extends Throwable> T fails(Class<T> kind, Run run) throws Exception {
        try {
            run.run();
        } catch (Throwable e) {
            if (kind.isInstance(e)) {
                return kind.cast(e);
            }
            throw e;
        }
        throw new AssertionError("the call succeeded");
    }

    void finish(String client) {
        System.out.printf("%s: %d checks passed, %d failed%n", client, passed, failed.size());
        System.exit(failed.isEmpty() ? 0 : 1);
    }
}
