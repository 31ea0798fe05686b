/** What an upstream may send to make decoding slow, and what it comes to. */
import { assert, describe, it } from "@effect/vitest"
import { mostFragments, mostSearchResults, PatchDocument } from "../../src/contracts/session/patchDocument.ts"
import { ReplyDecoder } from "../../src/contracts/session/readReply.ts"
import { inlineReasoning } from "../../src/contracts/shared/inlineReasoning.ts"
import type { Meter } from "../../src/domain/stream/cooperative.ts"
import type { UpstreamEvent } from "../../src/domain/UpstreamEvent.ts"
import { assertLinear, type Shape } from "../support/linear.ts"

const start = { v: { response: { message_id: 2, status: "WIP", fragments: [{ type: "RESPONSE", content: "" }] } } }
const at = (path: string, v: unknown, o = "APPEND") => ({ p: `response/${path}`, o, v })
const batch = (...list: ReadonlyArray<unknown>) => ({ p: "response", o: "BATCH", v: list })
const grow = { p: "fragments/-1/content", o: "APPEND", v: "word " }

/** Decodes patches; gives the characters that went in and came out. */
const decode = (patches: ReadonlyArray<unknown>, meter: Meter): number => {
  const decoder = new ReplyDecoder(meter)
  const out: Array<UpstreamEvent> = []
  let characters = 0
  for (const patch of [start, ...patches]) {
    const data = JSON.stringify(patch)
    characters += data.length
    decoder.push({ event: undefined, data }, out)
    if (decoder.failed) break
  }
  return characters + decoder.produced
}

const times = <A>(n: number, f: (i: number) => A): Array<A> => Array.from({ length: n }, (_, i) => f(i))

const shapes: { readonly [about: string]: (n: number) => ReadonlyArray<unknown> } = {
  "two changes of text in one patch": (n) => times(n, () => batch(grow, grow)),
  "text and other things in one patch": (n) => times(n, () => batch(grow, { p: "x", o: "SET", v: 1 })),
  "one character a patch": (n) => times(n, () => ({ ...at("fragments/-1/content", "x") })),
  "one character a bare patch": (n) => [at("fragments/0/content", "x"), ...times(n, () => ({ v: "x" }))],
  "text and usage in turns": (n) =>
    times(n, (i) => i % 2 === 0 ? at("fragments/-1/content", "x") : at("accumulated_token_usage", i, "SET")),
  "a fragment a patch": (n) => times(n, () => at("fragments", [{ type: "RESPONSE", content: "x" }])),
  "a fragment a patch, set at its index": (n) =>
    times(n, (i) => at(`fragments/${i + 1}`, { type: "RESPONSE", content: "x" }, "SET")),
  "fragments that grow in turns, of which the first is not the last": (n) => [
    at("fragments", times(n, () => ({ type: "TIP", content: "" }))),
    ...times(n, () => at("fragments/0/content", "x"))
  ],
  "text that is set again and again": (n) => [
    at("fragments/0/content", "x".repeat(n)),
    ...times(n, () => at("fragments/0/type", "RESPONSE", "SET"))
  ],
  "text that is set with one character more": (n) => {
    const size = Math.floor(Math.sqrt(n))
    return times(size, (i) => at("fragments/0/content", "x".repeat(i), "SET"))
  },
  "snapshots of the whole": (n) => {
    const size = Math.floor(Math.sqrt(n))
    return times(size, (i) => ({
      v: { response: { status: "WIP", fragments: [{ type: "RESPONSE", content: "x".repeat(i) }] } }
    }))
  },
  "long paths that stick": (n) => [at("x".repeat(n), "y"), ...times(n, () => ({ v: "y" }))],
  "nothing but blanks": (n) => times(n, () => at("fragments/-1/content", " ")),
  "patches that say nothing": (n) => times(n, () => at("nowhere/0/x", "y")),
  "nested batches": (n) => times(n, () => batch(batch(batch(grow)), batch(grow)))
}

/** Comparisons that are allowed before the first character has come. */
const fixed = 1024 * 1024

describe("the document of a session reply costs a constant for each character", () => {
  for (const [about, patches] of Object.entries(shapes)) {
    const shape: Shape = (n, meter) => decode(patches(n), meter)
    it(`${about}`, () => assertLinear(shape, 2_000, 8, about === "text that is set again and again" ? 16 * fixed : 0))
  }

  it("gives up a reply that is rewritten over and over", () => {
    const decoder = new ReplyDecoder()
    const out: Array<UpstreamEvent> = []
    const push = (patch: unknown) => decoder.push({ event: undefined, data: JSON.stringify(patch) }, out)
    push(start)
    push(at("fragments/0/content", "x".repeat(1_000_000)))
    let patches = 0
    while (!decoder.failed) {
      push(at("fragments/0/type", "RESPONSE", "SET"))
      patches++
    }
    assert.isAtMost(patches, 200)
    assert.deepInclude(decoder.endRound(), { _tag: "Failed" })
  })

  it("gives up a document that grows beyond all measure where it is no text", () => {
    const decoder = new ReplyDecoder()
    const out: Array<UpstreamEvent> = []
    const piece = "x".repeat(1024 * 1024)
    let sent = 0
    while (!decoder.failed) {
      decoder.push({ event: undefined, data: JSON.stringify(at(`other${sent++}`, piece, "SET")) }, out)
    }
    assert.isAtMost(sent, 100)
  })

  it("keeps 10,000 fragments and 1,000 search results, however they come", () => {
    const fragments = times(mostFragments + 5, () => ({ type: "RESPONSE", content: "x" }))
    const results = times(mostSearchResults + 5, (i) => ({ url: `${i}` }))
    const kept = (...patches: ReadonlyArray<unknown>) => {
      const document = new PatchDocument()
      for (const patch of patches) document.apply(patch as Record<string, unknown>, () => {})
      const response = document.root["response"] as Record<string, ReadonlyArray<unknown>>
      return [response["fragments"]?.length, response["search_results"]?.length]
    }
    const all = [mostFragments, mostSearchResults]
    assert.deepStrictEqual(kept({ v: { response: { fragments, search_results: results } } }), all)
    assert.deepStrictEqual(kept(start, at("fragments", fragments), at("search_results", results)), all)
    assert.deepStrictEqual(kept(start, at("fragments", fragments, "SET"), at("search_results", results, "SET")), all)
    const singles = [
      ...fragments.map((one) => at("fragments", [one])),
      ...results.map((one) => at("search_results", [one]))
    ]
    assert.deepStrictEqual(kept(start, at("search_results", [], "SET"), ...singles), all)
    const search = { type: "TOOL_SEARCH", results }
    const document = new PatchDocument()
    document.apply({ v: { response: { fragments: [] } } }, () => {})
    document.apply(at("fragments", [search]), () => {})
    assert.lengthOf(search.results, mostSearchResults)
  })
})

describe("reasoning between tags costs a constant for each character", () => {
  const pieces: { readonly [about: string]: (n: number) => ReadonlyArray<string> } = {
    "blanks before anything": (n) => times(n, () => " "),
    "tags that begin and do not go on": (n) => ["<think>", ...times(n, () => "</thin")],
    "one character at a time": (n) => [..."<think>", ...times(n, () => "<")],
    "line breaks after it": (n) => ["<think>x</think>", ...times(n, () => "\n")]
  }
  for (const [about, make] of Object.entries(pieces)) {
    it(`${about}`, () =>
      assertLinear(
        (n, meter) => {
          const machine = inlineReasoning(meter)
          const out: Array<UpstreamEvent> = []
          let characters = 0
          for (const piece of make(n)) {
            characters += piece.length
            machine.push(piece, out)
          }
          machine.end(out)
          return characters
        },
        2_000,
        16
      ))
  }
})
