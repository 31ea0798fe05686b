/**
 * What the cache of its server was to the prompt of a request, and why it was not more, in one sentence.
 */
import { useMemo } from "preact/hooks"
import { duration, number } from "../../parts/format.ts"
import { Section } from "../../parts/Heading.tsx"
import type { RequestItem } from "../../state/client.ts"
import { list, parsed, record as objectOf } from "../../state/json.ts"
import type { RequestRecord } from "../../state/requests.ts"
import { useTexts } from "../../state/texts.ts"
import type { AllTexts } from "../../texts/later.ts"

type Cache = NonNullable<RequestItem["prompt_cache"]>

/** The names of functions in an entry of a request's `tools`; `undefined` for an entry of another form. */
const namesIn = (entry: unknown): ReadonlyArray<string> | undefined => {
  const tool = objectOf(entry)
  // Content generation lists functions within each entry.
  if (Object.keys(tool).join() === "functionDeclarations") {
    const names = list(tool["functionDeclarations"]).map((each) => objectOf(each)["name"])
    return names.every((name) => typeof name === "string") ? names : undefined
  }
  const name = tool["name"] ?? objectOf(tool["function"])["name"]
  // A namespace has a name too, but each of its tools has a place of its own.
  return typeof name === "string" && tool["tools"] === undefined ? [name] : undefined
}

/** The name of the tool at a place of a prompt, `tools[1]`; `undefined` if the recorded body does not tell it for certain. */
export const toolAt = (place: string, body: string): string | undefined => {
  const index = /^tools\[(\d+)\]$/.exec(place)?.[1]
  if (index === undefined) return undefined
  const names: Array<string> = []
  for (const entry of list(objectOf(parsed(body))["tools"])) {
    const found = namesIn(entry)
    // A tool of another form may stand at several places, or at none.
    if (found === undefined) return undefined
    names.push(...found)
  }
  return names[Number(index)]
}

/** Why a turn was no hit, as a clause. */
const whyOf = (
  t: AllTexts["promptCache"],
  reason: NonNullable<Cache["reason"]>,
  cache: Cache,
  tool: string | undefined
) => {
  const { age_s, at, because } = cache
  if (reason === "moved" && because !== null) return t.moved[because]
  if (reason === "expired" && age_s !== null) return t.expiredAfter(duration(age_s * 1_000))
  if (reason !== "changed" || at === null) return t.reasons[reason]
  return at === "system" ? t.systemChanged : t.changed(at, tool)
}

/** The sentence of a turn. `tool` is the name of the tool that has changed, if it is known. */
export const cacheSentence = (t: AllTexts["promptCache"], cache: Cache, tool?: string): string => {
  const { predicted, prompt, read, reason, result } = cache
  // More than the expected ones may have been read.
  const isExpected = predicted > 0 && read <= predicted
  const count = t.read(number(read), number(isExpected ? predicted : prompt), isExpected)
  if (reason === null) return t.sentence(count)
  const why = whyOf(t, reason, cache, tool)
  return t.sentence(result === "partial" ? count : reason === "not_reported" ? t.unknown : t.results[result], why)
}

export const PromptCache = ({ record: { prompt_cache, request } }: { readonly record: RequestRecord }) => {
  const t = useTexts().promptCache
  const at = prompt_cache?.at ?? ""
  const tool = useMemo(() => toolAt(at, request.body), [at, request.body])
  if (prompt_cache === undefined) return null
  return (
    <Section name={t.title}>
      <p>{cacheSentence(t, prompt_cache, tool)}</p>
    </Section>
  )
}
