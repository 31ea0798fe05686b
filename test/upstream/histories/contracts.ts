/**
 * The rules of each contract for a history, as its vendor documents them: a plain look at what left, which knows nothing of the gateway.
 */
import { assert } from "@effect/vitest"
import type { StyleName } from "../../support/styleClients.ts"

type Fields = { readonly [field: string]: unknown }

const list = (value: unknown): ReadonlyArray<Fields> => Array.isArray(value) ? value as ReadonlyArray<Fields> : []

const same = (calls: ReadonlyArray<unknown>, results: ReadonlyArray<unknown>) =>
  assert.deepStrictEqual(results.toSorted(), calls.toSorted(), "the results are those of the calls")

const distinct = (values: ReadonlyArray<unknown>) => assert.strictEqual(new Set(values).size, values.length, "distinct")

const chat = (body: Fields) => {
  const messages = list(body["messages"])
  assert.isNotEmpty(messages)
  let open: ReadonlyArray<string> = []
  for (const { content, role, tool_call_id: id, tool_calls: calls } of messages) {
    if (role === "tool") {
      assert.include(open, id)
      open = open.filter((each) => each !== id)
      continue
    }
    assert.isEmpty(open, "each call has its result directly after it")
    open = list(calls).map((call) => String(call["id"]))
    for (const id of open) assert.isAtMost(id.length, 40)
    distinct(open)
    assert(content !== null || open.length > 0)
  }
  assert.isEmpty(open, "each call has its result")
}

/** Turns of one role in a row are one. */
const joined = (turns: ReadonlyArray<Fields>, blocksOf: (turn: Fields) => ReadonlyArray<Fields>) => {
  const all: Array<{ readonly role: unknown; readonly blocks: Array<Fields> }> = []
  for (const turn of turns) {
    const last = all.at(-1)
    if (last?.role === turn["role"]) last?.blocks.push(...blocksOf(turn))
    else all.push({ role: turn["role"], blocks: [...blocksOf(turn)] })
  }
  return all
}

const messages = (body: Fields) => {
  const sent = list(body["messages"])
  const turns = joined(
    sent,
    ({ content }) => typeof content === "string" ? [{ type: "text", text: content }] : list(content)
  )
  assert.strictEqual(turns[0]?.role, "user")
  let open: ReadonlyArray<unknown> = []
  const ids: Array<unknown> = []
  for (const [i, { blocks, role }] of turns.entries()) {
    // The last turn of the assistant may be one to be written.
    assert(blocks.length > 0 || (role === "assistant" && i === turns.length - 1))
    for (const { text, type } of blocks) if (type === "text") assert.notStrictEqual(String(text).trim(), "")
    const results = blocks.filter(({ type }) => type === "tool_result")
    assert(blocks.slice(0, results.length).every(({ type }) => type === "tool_result"), "results come first")
    same(open, results.map(({ tool_use_id: id }) => id))
    open = role === "assistant" ? blocks.flatMap(({ id, type }) => type === "tool_use" ? [id] : []) : []
    for (const id of open) assert.match(String(id), /^[a-zA-Z0-9_-]{1,64}$/)
    ids.push(...open)
  }
  assert.isEmpty(open)
  distinct(ids)
}

const generate = (body: Fields) => {
  const turns = joined(list(body["contents"]), ({ parts }) => list(parts))
  assert.isNotEmpty(turns)
  let open: ReadonlyArray<unknown> = []
  for (const [i, { blocks, role }] of turns.entries()) {
    assert.isNotEmpty(blocks)
    for (const { text } of blocks) assert.notStrictEqual(text, "")
    const named = (kind: string) =>
      blocks.flatMap((part) => part[kind] === undefined ? [] : [(part[kind] as Fields)["name"]])
    same(open, named("functionResponse"))
    assert(role === "user" || named("functionResponse").length === 0)
    open = named("functionCall")
    if (open.length > 0) assert.deepStrictEqual([role, turns[i - 1]?.role], ["model", "user"])
  }
  assert.isEmpty(open)
}

const responses = (body: Fields) => {
  const items = list(body["input"])
  assert(items.length > 0 || typeof body["input"] === "string")
  const calls: Array<unknown> = []
  const results: Array<unknown> = []
  for (const { call_id: id, type } of items) {
    if (type === "function_call") calls.push(id)
    if (type !== "function_call_output") continue
    assert.include(calls, id)
    results.push(id)
  }
  for (const id of calls) assert.isAtMost(String(id).length, 64)
  same(calls, results)
  distinct(calls)
}

/** The rules by the contract's style. */
export const rules: Readonly<Record<StyleName, (body: Fields) => void>> = { chat, responses, messages, generate }
