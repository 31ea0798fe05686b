/** What every form must provide: markers that are disarmed in every spelling. A new form is one module and one line. */
import { assert, describe, it } from "@effect/vitest"
import { runSync, Slice } from "../../src/domain/stream/cooperative.ts"
import { run } from "../../src/domain/stream/transducer.ts"
import { disarm, disarmOf } from "../../src/sieve/disarm.ts"
import { forms } from "../../src/sieve/forms/table.ts"
import { sieveOf } from "../../src/sieve/sieve.ts"
import { callId, feed, readCases, replyOf, textOf, tools } from "./support.ts"
import { toyForm } from "./toyForm.ts"

const fullWidth = (text: string): string =>
  text.replaceAll(/[!-~]/g, (character) => String.fromCharCode(character.charCodeAt(0) + 0xfee0))

/** The ways in which models and callers write a tag. */
const tagSpellings = (name: string): ReadonlyArray<string> => [
  `<${name}>`,
  `</${name}>`,
  `<${name} name="x">`,
  `<${name}=x>`,
  `<${name}/>`,
  `<x:${name}>`,
  `<${name.toUpperCase()}>`,
  `<｜DSML｜${name}>`,
  `</｜DSML｜${name}>`,
  `<|${name}|>`,
  fullWidth(`<${name}>`)
]

const tokenSpellings = (name: string): ReadonlyArray<string> => [
  `<|${name}|>`,
  `</|${name}|>`,
  `<｜${name.replaceAll("_", "▁")}｜>`,
  `< | ${name} | >`,
  fullWidth(`<|${name}|>`)
]

const isDisarmed = (disarmed: string, marker: string): boolean =>
  disarmed === `a${marker.slice(0, 1)}\u200b${marker.slice(1)}b`

describe.each(forms.map((form) => [form.name, form] as const))("the sieve's form %s", (_, { markers, opening }) => {
  const names = [...markers.tags ?? [], ...markers.tokens ?? []]

  it("has its markers disarmed in every spelling", () => {
    const spellings = [
      ...(markers.tags ?? []).flatMap(tagSpellings),
      ...(markers.tokens ?? []).flatMap(tokenSpellings)
    ]
    for (const spelling of spellings) assert(isDisarmed(disarm(`a${spelling}b`), spelling), spelling)
  })

  it("lists the names that begin it among its markers", () => {
    if (opening.at !== "tag") assert.deepStrictEqual(names, [])
    else if ("names" in opening) assert.includeMembers(names, [...opening.names])
  })
})

describe("disarm", () => {
  /** Child tags whose names resemble a marker's but mean nothing by themselves. */
  const left = new Set(["tool_name", "arguments", "argument"])

  it("disarms every marker in the texts of the corpus", () => {
    const declared = new Set(tools.map(({ name }) => name))
    const armed = new Set<string>()
    for (const { text } of readCases("families")) {
      for (
        const [, name] of disarm(text).matchAll(
          /<\/?\|?\/?((?:tool|func|invoke|arg|action|python|start_|end_)[a-z_]*)(?=[\s>|=/])/gi
        )
      ) {
        if (!left.has(name!) && !declared.has(name!)) armed.add(name!)
      }
    }
    assert.deepStrictEqual([...armed], [])
  })
})

describe("a form added to the sieve", () => {
  const all = [...forms, toyForm]
  const withToy = sieveOf(all)({ tools, callId })
  const text =
    "First <|use|>wx{\"city\":\"Oslo\"}<|done|> then <tool_call>{\"name\":\"wx\",\"arguments\":{}}</tool_call>."

  it("is recognized in every cut, like the other forms", () => {
    const reply = [
      "First ",
      { name: "wx", arguments: "{\"city\":\"Oslo\"}", isFinished: true },
      " then ",
      { name: "wx", arguments: "{}", isFinished: true },
      "."
    ]
    for (let at = 0; at <= text.length; at++) {
      assert.deepStrictEqual(replyOf(run(withToy, [text.slice(0, at), text.slice(at)])), reply)
    }
    assert.deepStrictEqual(replyOf(run(withToy, text)), reply)
  })

  it("is text for a sieve without it", () => {
    assert.include(textOf(replyOf(feed([text]))), "<|use|>wx{\"city\":\"Oslo\"}<|done|>")
  })

  it("has its markers disarmed", () => {
    const slice = new Slice()
    assert.strictEqual(
      runSync(disarmOf(all)("<|use|>wx{}<｜done｜>", slice)),
      "<\u200b|use|>wx{}<\u200b｜done｜>"
    )
    assert.strictEqual(disarm("<|use|>wx{}<|done|>"), "<|use|>wx{}<|done|>")
  })
})
