package app

import "strings"

// ownPrefix begins the variables that are ours in the first place. Other programs use it too, so that a foreign variable
// such as WORKER_NAME is left alone.
const ownPrefix = "WORKER_"

// misspelt returns the setting that a variable was probably meant to be, and "" for one that is ours or somebody else's.
func misspelt(name string) string {
	best, least := "", 0
	for _, s := range new(config).settings() {
		if s.env == name {
			return ""
		}
		if d, close := resembles(name, s.env); close && (best == "" || d < least) {
			best, least = s.env, d
		}
	}
	return best
}

// ofService reports whether a variable is one of those that Kubernetes gives to every container for each service beside it:
// for a service worker-health there are WORKER_HEALTH_SERVICE_HOST, WORKER_HEALTH_PORT, WORKER_HEALTH_PORT_8080_TCP and more.
func ofService(name string, values map[string]string) bool {
	for v := range values {
		service, ok := strings.CutSuffix(v, "_SERVICE_HOST")
		if ok && (strings.HasPrefix(name, service+"_SERVICE_") || strings.HasPrefix(name, service+"_PORT")) {
			return true
		}
	}
	return false
}

// resembles reports whether a variable looks like a misspelt setting, and in how many places they differ. Lower case and
// dashes count as misspelt. What begins with our own prefix may differ more, and may have another last word.
func resembles(name, setting string) (distance int, close bool) {
	if len(name) > 2*len(setting) {
		return 0, false
	}
	name = strings.ReplaceAll(strings.ToUpper(name), "-", "_")
	distance = editDistance(name, setting)
	rest, own := strings.CutPrefix(setting, ownPrefix)
	if !own {
		return distance, distance <= 2
	}
	// The shorter a name, the more foreign names are near it: WORKER_ID and WORKER_KEY differ in three places.
	near := distance <= min(3, max(1, len(rest)/3))
	return distance, near || sameGroup(name, setting) || sameGroup(setting, name)
}

// sameGroup reports whether b begins with all of a but its last word, and that is more than the prefix.
func sameGroup(a, b string) bool {
	group := a[:strings.LastIndex(a, "_")+1]
	return len(group) > len(ownPrefix) && strings.HasPrefix(group, ownPrefix) && strings.HasPrefix(b, group)
}

// editDistance counts the insertions, removals, replacements and swaps of neighbours that turn one text into the other.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+differ)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
