/** Which of the fields that the gateway does not model a server gets. */

/** What becomes of fields that the gateway does not model: all pass, none, or those of a list. */
export type FieldPolicy = "pass" | "drop" | ReadonlyArray<string>

/** Fields that a driver writes itself, because the reply depends on them. */
const ownFields: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "input",
  "encoding_format",
  "stream",
  "stream_options",
  "n",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "functions",
  "function_call"
])

/** Tells whether the policy lets a name pass. */
export const passes = (policy: FieldPolicy): (name: string) => boolean => {
  if (policy === "drop") return () => false
  if (policy === "pass") return () => true
  const allowed = new Set(policy)
  return (name) => allowed.has(name)
}

/** Tells whether the policy lets a field pass that no driver writes itself. */
export const passesUnwritten = (policy: FieldPolicy): (name: string) => boolean => {
  const isPassed = passes(policy)
  return (name) => isPassed(name) && !ownFields.has(name)
}
