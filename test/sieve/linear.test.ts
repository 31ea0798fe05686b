/**
 * The sieve's time is linear in its input. The tests count characters: how often each is looked at, and the lengths of texts that are
 * searched, sliced or matched.
 */
import { assert, describe, it } from "@effect/vitest"
import { feed } from "./support.ts"

type Counted = "charCodeAt" | "charAt" | "indexOf" | "slice" | "replace" | "startsWith" | "trim" | "includes"

/** Runs `body` and counts the characters that the methods of its strings touch. */
const countSteps = (body: () => void): number => {
  let steps = 0
  const prototype: { [K in Counted]: (this: string, ...args: Array<never>) => unknown } = String.prototype
  const originals = new Map<Counted, (this: string, ...args: Array<never>) => unknown>()
  const wrap = (name: Counted, cost: (text: string, result: unknown, args: ReadonlyArray<unknown>) => number): void => {
    const original = prototype[name]
    originals.set(name, original)
    prototype[name] = function(this: string, ...args) {
      const result = original.apply(this, args)
      steps += cost(this, result, args)
      return result
    }
  }
  wrap("charCodeAt", () => 1)
  wrap("charAt", () => 1)
  wrap("startsWith", (_, __, [search]) => String(search).length)
  wrap("slice", (_, result) => (result as string).length)
  wrap(
    "indexOf",
    (text, result, [, from]) => (Number(result) < 0 ? text.length : Number(result)) - Number(from ?? 0) + 1
  )
  wrap("replace", (text) => text.length)
  wrap("trim", (text) => text.length)
  wrap("includes", (text) => text.length)
  try {
    body()
  } finally {
    for (const [name, original] of originals) prototype[name] = original
  }
  return steps
}

const call = (body: string): string => `<tool_calls><invoke name="free">${body}</invoke></tool_calls>`

const inputs: { readonly [name: string]: (length: number) => string } = {
  prose: (n) => "The quick brown fox jumps over the lazy dog.\n".repeat(n / 45),
  braces: (n) => "{".repeat(n),
  "closing braces": (n) => "}".repeat(n),
  "angle brackets": (n) => "<".repeat(n),
  brackets: (n) => "[".repeat(n),
  "back-ticks": (n) => "`".repeat(n),
  "spaced back-ticks": (n) => "` `` ".repeat(n / 5),
  tildes: (n) => "\n~~~".repeat(n / 4),
  newlines: (n) => "\n".repeat(n),
  blanks: (n) => "{" + " ".repeat(n),
  "tags that begin": (n) => "<tool_call>".repeat(n / 11),
  "wrappers that begin": (n) => "<tool_calls>\n".repeat(n / 13),
  "invokes that begin": (n) => "<invoke name=\"wx\">".repeat(n / 18),
  "tokens that begin": (n) => "<｜tool▁call▁begin｜>".repeat(n / 19),
  "names that never end": (n) => "{\"name\":\"".repeat(n / 9),
  "wrappers in JSON that begin": (n) => "{\"tool_calls\":[".repeat(n / 15),
  "elements that begin": (n) => "{\"tool_calls\":[{\"id\":\"a\",".repeat(n / 25),
  "attributes that never end": (n) => "<wx city='".repeat(n / 10),
  "malformed calls": (n) => "<tool_call>{\"name\":\"wx\",\"arguments\":{!".repeat(n / 39),
  "malformed calls in paragraphs": (n) => "{\"name\":\"wx\",\"arguments\":{!\n\n".repeat(n / 30),
  "HTML": (n) => "<div class=\"a\"><p>text</p></div>\n".repeat(n / 33),
  "a fenced reply that turns out ordinary": (n) =>
    "```json\n" + "{\"name\":\"wx\",\"arguments\":{}}\n".repeat(n / 29) + "x",
  "JSON arguments": (n) => `{"name":"wx","arguments":{"city":"${"Oslo \\n \\\" ".repeat(n / 11)}"}}`,
  "nested JSON arguments": (n) => `{"name":"wx","arguments":{"a":${"[".repeat(n / 2)}${"]".repeat(n / 2)}}}`,
  "JSON in a string": (n) => `{"name":"wx","arguments":"{\\"a\\":\\"${"Oslo \\\\n ".repeat(n / 9)}\\"}"}`,
  "late names": (n) => `{"tool_calls":[{"input":{"a":"${"x".repeat(n)}"},"name":"wx"}]}`,
  "a streamed value": (n) => call(`<parameter name="a">hi ${"a < b &amp; c\n</p> ".repeat(n / 19)}</parameter>`),
  "a held value": (n) => call(`<parameter name="a">[${"\"x\",".repeat(n / 4)}1]</parameter>`),
  "CDATA": (n) => call(`<parameter name="a">x<![CDATA[${"]] > ".repeat(n / 5)}]]></parameter>`),
  "blanks in a value": (n) => call(`<parameter name="a">${" ".repeat(n)}x</parameter>`),
  "many parameters": (n) =>
    call(Array.from({ length: n / 33 }, (_, i) => `<parameter name="p${i}">x</parameter>`).join("")),
  "nested items": (n) => call(`<parameter name="a">${"<item>".repeat(n / 13)}${"</item>".repeat(n / 13)}</parameter>`),
  "strings between escapes": (n) =>
    `<start_function_call>call:wx{city:<escape>${"a < b <esc \\ \" ".repeat(n / 15)}<escape>}<end_function_call>`,
  "words that begin forms": (n) => "tool_cod\nfunctools\n".repeat(n / 19),
  "fenced forms that begin": (n) => "```tool_code\nwx(city\n```\n".repeat(n / 25),
  "a malformed fenced form": (n) => "```tool_code\nwx(city='a', days=!" + "x\n``".repeat(n / 4),
  "a list of Python calls": (n) => "<|tool_call_start|>[" + "t(z=1), ".repeat(n / 8) + "t()]",
  pythonic: (n) => `[wx(city='${"it\\'s \"x\" ".repeat(n / 10)}')]`
}

/** The sizes of pieces: the whole text, typical pieces of a stream, single characters. */
const cuts = [Number.MAX_SAFE_INTEGER, 7, 1]

const stepsFor = (text: string, size: number): number => {
  const pieces: Array<string> = []
  for (let at = 0; at < text.length; at += size) pieces.push(text.slice(at, at + size))
  return countSteps(() => feed(pieces))
}

describe("the sieve looks at every character a bounded number of times", () => {
  for (const [name, make] of Object.entries(inputs)) {
    it(`in ${name}`, () => {
      for (const size of cuts) {
        const short = make(2000)
        const long = make(16_000)
        const shortSteps = stepsFor(short, size) / short.length
        const longSteps = stepsFor(long, size) / long.length
        assert.isBelow(longSteps, 1.3 * shortSteps + 2, `${name} in pieces of ${size}`)
        assert.isBelow(longSteps, 100, `${name} in pieces of ${size}`)
      }
    })
  }
})
