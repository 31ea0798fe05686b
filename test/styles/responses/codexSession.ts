/**
 * What codex 0.171.0 sends, recorded in front of the gateway; its texts are shortened. Over WebSocket a connection begins with a warm-up that
 * has the instructions, and each turn sends the new items only. Over HTTP each request has all items. A resumed session sends everything once
 * more. A compaction takes the place of what is before it, and the next request continues nothing.
 */
import { assert } from "@effect/vitest"
import type { JsonRecord } from "../../../src/domain/json.ts"
import { businessKey } from "../../support/gateway.ts"
import { parseFrames } from "../../support/sse.ts"
import { Client, type Event } from "./socket/client.ts"

export type Item = JsonRecord & { readonly type: string }

const session = "01a21c77-d28f-7a83-b33d-209f07f3d76a"
const turn = "01a21c77-d2d4-7682-ad1b-5a2a94b464bb"

const note = (...kinds: ReadonlyArray<string>) => ({
  internal_chat_message_metadata_passthrough: {
    turn_id: turn,
    create_time: 1_795_773_944.7290733,
    ...(kinds.length === 0 ? {} : { content_item_kinds: kinds })
  }
})

const message = (role: string, id: string, texts: ReadonlyArray<string>, ...kinds: ReadonlyArray<string>): Item => ({
  type: "message",
  id: `msg_${id}`,
  role,
  content: texts.map((text) => ({ type: "input_text", text })),
  ...note(...kinds)
})

const instructions = message("developer", "94f857b5-703f-559a-8954-907457b4c17c", [
  "You are a coding agent."
], "model.base_instructions")

const surroundings = [
  message(
    "developer",
    "01a21c77-d399-7822-a8c6-a735579fdf15",
    ["<skills_instructions>\n</skills_instructions>", "<permissions instructions>\n</permissions instructions>"],
    "host_skills.instructions",
    "permissions.instructions"
  ),
  message("user", "01a21c77-d399-7822-a8c6-a74f9c933ac8", [
    "<environment_context>\n  <cwd>/project</cwd>\n</environment_context>"
  ], "environments.environment_context")
]

const declared = (name: string, parameters: ReadonlyArray<string>) => ({
  type: "function",
  name,
  description: `Does ${name}.`,
  strict: false,
  parameters: {
    type: "object",
    properties: Object.fromEntries(parameters.map((parameter) => [parameter, { type: "string" }])),
    additionalProperties: false
  }
})

const fields = {
  stream: true,
  tools: [
    declared("exec_command", ["cmd", "workdir"]),
    declared("write_stdin", ["session_id", "chars"]),
    declared("view_image", ["path"]),
    {
      type: "namespace",
      name: "multi_agent_v1",
      description: "Agents.",
      tools: [declared("spawn_agent", ["message"])]
    },
    { type: "web_search", external_web_access: false }
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { summary: "auto" },
  store: false,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: session,
  client_metadata: {
    session_id: session,
    thread_id: session,
    turn_id: turn,
    "x-codex-window-id": `${session}:0`,
    "x-codex-turn-metadata": JSON.stringify({ session_id: session, request_kind: "turn" })
  }
}

/** An item of a reply as codex sends it back. */
const sentBack = (
  { arguments: args, call_id, content, encrypted_content, id, name, role, status, summary, type }: Item
) =>
  type === "compaction"
    ? { type, id, encrypted_content }
    : type === "reasoning"
    ? { type, id, summary, content: null, encrypted_content, ...note() }
    : type === "function_call"
    ? { type, status, id, name, arguments: args, call_id, ...note() }
    : { type, status, id, role, content, ...note("unknown") }

/** Sends a request over a transport, and returns its events. */
type Ask = (body: JsonRecord, items: ReadonlyArray<Item>) => Promise<ReadonlyArray<Event>>

const overHttp = (url: string): Ask => async (body, input) => {
  const response = await fetch(`${url}/v1/responses`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${businessKey}`,
      "content-type": "application/json",
      accept: "text/event-stream",
      originator: "codex_exec",
      "session-id": session
    },
    body: JSON.stringify({ ...body, input })
  })
  assert.strictEqual(response.status, 200, await response.clone().text())
  assert.notInclude(response.headers.get("x-gateway-ignored") ?? "", "passthrough")
  const data = parseFrames(await response.text()).map((frame) => frame.data)
  return data.filter((text) => text !== "[DONE]").map((text) => JSON.parse(text) as Event)
}

const overSocket = async (url: string): Promise<{ readonly ask: Ask; readonly close: () => void }> => {
  const client = await Client.open(url, {
    authorization: `Bearer ${businessKey}`,
    "openai-beta": "responses_websockets=2026-02-06",
    originator: "codex_exec",
    "session-id": session
  })
  const send = async (body: JsonRecord) => {
    client.send({ type: "response.create", ...body })
    const events = await client.reply()
    assert.notInclude(events[0]!.headers?.["x-gateway-ignored"] ?? "", "passthrough")
    return events
  }
  let sent: ReadonlyArray<Item> = [instructions]
  let previous = ""
  const keep = (events: ReadonlyArray<Event>, items: ReadonlyArray<Item>) => {
    const { output = [], id = "" } = events.at(-1)!.response ?? {}
    previous = id
    sent = [...items, ...(output as ReadonlyArray<Item>).map(sentBack)]
    return events
  }
  return {
    ask: async (body, items) => {
      if (previous === "") keep(await send({ ...body, generate: false, input: sent }), sent)
      const continues = JSON.stringify(items.slice(0, sent.length)) === JSON.stringify(sent)
      const input = continues ? items.slice(sent.length) : items
      return keep(await send({ ...body, ...(continues ? { previous_response_id: previous } : {}), input }), items)
    },
    close: () => client.socket.terminate()
  }
}

export type Transport = "HTTP" | "WebSocket"

/** A session of codex. Its tool says `plover` for each command. */
export class CodexSession {
  readonly #model: string
  readonly #transport: Transport
  #items: ReadonlyArray<Item> = [instructions, ...surroundings]
  #count = 0

  constructor(model: string, transport: Transport) {
    this.#model = model
    this.#transport = transport
  }

  /** Runs codex once, as `codex exec` and `codex exec resume` do. With `compacts` it compacts first. Returns the last message. */
  async run(url: string, prompt: string, compacts = false): Promise<string> {
    const { ask, close } = this.#transport === "HTTP" ? { ask: overHttp(url), close: () => {} } : await overSocket(url)
    try {
      if (compacts) {
        const [compaction, ...others] = await this.#reply(ask, [...this.#items, { type: "compaction_trigger" }])
        assert.strictEqual(compaction?.type, "compaction")
        assert.isEmpty(others)
        const users = this.#items.filter(({ role }) => role === "user").slice(1)
        this.#items = [instructions, ...surroundings, ...users, compaction!]
      }
      const id = `01a21c77-d3a8-79f1-a29e-62c6ef9cd5b${++this.#count}`
      this.#items = [...this.#items, message("user", id, [prompt], "user.text")]
      for (;;) {
        const output = await this.#reply(ask, this.#items)
        const call = output.find(({ type }) => type === "function_call")
        this.#items = [...this.#items, ...output]
        if (call === undefined) return JSON.stringify(output.at(-1)!["content"])
        this.#items = [...this.#items, {
          type: "function_call_output",
          id: `fco_${call["call_id"] as string}`,
          call_id: call["call_id"],
          output: "Process exited with code 0\nOutput:\nplover\n",
          ...note()
        }]
      }
    } finally {
      close()
    }
  }

  async #reply(ask: Ask, items: ReadonlyArray<Item>): Promise<ReadonlyArray<Item>> {
    const events = await ask({ ...fields, model: this.#model }, items)
    const last = events.at(-1)!
    assert.strictEqual(last.type, "response.completed", JSON.stringify(last))
    const done = events.filter(({ type }) => type === "response.output_item.done")
    return done.map(({ item }) => sentBack(item as Item))
  }
}
