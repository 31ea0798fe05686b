/**
 * A conversation of twenty turns keeps the bytes of its earlier turns at the server: for every style in front of every driver, with a system
 * prompt, tools, loops of calls and thinking. The server caches by the longest common beginning.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import type { RawConfig } from "../../src/config/json.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { cachedReply, PromptCaches, promptOf, type Says } from "../support/promptCacheServer.ts"
import { type DriverName, drivers, type Farm, startFarm } from "./support.ts"

type Fields = { readonly [field: string]: unknown }

const turns = 20
const system = "You are an agent that answers in one word. ".repeat(40)
const schema = {
  type: "object",
  properties: { path: { type: "string" }, all: { type: "boolean" } },
  required: ["path"]
}
const tools = [{ name: "list_files", description: "Lists files." }, { name: "read_file", description: "Reads a file." }]

/** What the server says: each third reply is a call, and each reply of an even number has thinking. */
const says = (index: number): Says => {
  const thinking = index % 2 === 0 ? { thinking: `Thought ${index}.` } : {}
  return index % 3 === 1
    ? { ...thinking, call: { id: `call_${index}`, name: "read_file", input: { path: `b/${index}`, all: true } } }
    : { ...thinking, text: `Answer ${index}.` }
}

/** A call of a reply. */
interface Call {
  readonly id: string
  readonly name: string
}

/** How a client of a style keeps a conversation. */
interface Client {
  readonly path: string
  /** The body of a request. */
  readonly body: (items: ReadonlyArray<unknown>, session: Session) => Fields
  readonly user: (text: string) => unknown
  readonly result: (call: Call, text: string) => unknown
  /** What the client adds of a reply, and the calls in it. */
  readonly take: (reply: Fields) => { readonly items: ReadonlyArray<unknown>; readonly calls: ReadonlyArray<Call> }
}

interface Session {
  readonly previous: string | undefined
}

const list = (value: unknown): ReadonlyArray<Fields> => Array.isArray(value) ? value as ReadonlyArray<Fields> : []
const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const responses: Client = {
  path: "/v1/responses",
  body: (input, { previous }) => ({
    model: "m",
    instructions: system,
    include: ["reasoning.encrypted_content"],
    tools: tools.map((tool) => ({ type: "function", ...tool, parameters: schema, strict: false })),
    input,
    ...(previous === undefined ? { store: false } : previous === "" ? {} : { previous_response_id: previous })
  }),
  user: (text) => ({ role: "user", content: text }),
  result: ({ id }, output) => ({ type: "function_call_output", call_id: id, output }),
  take: ({ output }) => ({
    items: list(output),
    calls: list(output).filter(({ type }) => type === "function_call")
      .map(({ call_id, name }) => ({ id: textOf(call_id), name: textOf(name) }))
  })
}

const clients: Readonly<Record<string, Client>> = {
  chat: {
    path: "/v1/chat/completions",
    body: (messages) => ({
      model: "m",
      tools: tools.map((tool) => ({ type: "function", function: { ...tool, parameters: schema } })),
      messages: [{ role: "system", content: system }, ...messages]
    }),
    user: (content) => ({ role: "user", content }),
    result: ({ id }, content) => ({ role: "tool", tool_call_id: id, content }),
    take: ({ choices }) => {
      const message = list(choices)[0]!["message"] as Fields
      return {
        items: [message],
        calls: list(message["tool_calls"]).map(({ function: of, id }) => ({
          id: textOf(id),
          name: textOf((of as Fields)["name"])
        }))
      }
    }
  },
  responses,
  messages: {
    path: "/v1/messages",
    body: (messages) => ({
      model: "m",
      max_tokens: 4_000,
      thinking: { type: "enabled", budget_tokens: 2_000 },
      system,
      tools: tools.map((tool) => ({ ...tool, input_schema: schema })),
      messages
    }),
    user: (content) => ({ role: "user", content }),
    result: ({ id }, content) => ({ role: "user", content: [{ type: "tool_result", tool_use_id: id, content }] }),
    take: ({ content }) => ({
      items: [{ role: "assistant", content }],
      calls: list(content).filter(({ type }) => type === "tool_use")
        .map(({ id, name }) => ({ id: textOf(id), name: textOf(name) }))
    })
  },
  generate: {
    path: "/v1beta/models/m:generateContent",
    body: (contents) => ({
      systemInstruction: { parts: [{ text: system }] },
      generationConfig: { thinkingConfig: { includeThoughts: true } },
      tools: [{ functionDeclarations: tools.map((tool) => ({ ...tool, parameters: schema })) }],
      contents
    }),
    user: (text) => ({ role: "user", parts: [{ text }] }),
    result: ({ id, name }, result) => ({
      role: "user",
      parts: [{ functionResponse: { id, name, response: { result } } }]
    }),
    take: ({ candidates }) => {
      const content = list(candidates)[0]!["content"] as Fields
      return {
        items: [content],
        calls: list(content["parts"]).flatMap(({ functionCall }) =>
          functionCall === undefined ? [] : [functionCall as Call]
        )
      }
    }
  }
}

let farm: Farm
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())

const configOf = (names: ReadonlyArray<readonly [name: string, driver: DriverName]>, keys: ReadonlyArray<string>) => ({
  keys: [businessKey],
  upstreams: Object.fromEntries(
    names.map(([name, driver]) => [name, { ...farm.upstream(name, { driver }), models: { [name]: "m" } }])
  ),
  accounts: names.flatMap(([name]) => keys.map((token) => ({ upstream: name, token })))
} satisfies RawConfig)

interface Talk {
  readonly gateway: RunningGateway
  readonly client: Client
  readonly name: string
  readonly isStored?: boolean
  /** Is called between two turns; a gateway that replaces the running one. */
  readonly between?: (turn: number) => Promise<RunningGateway | undefined>
}

/** Holds a conversation of twenty turns with the server behind an upstream. Returns what its cache had. */
const talk = async ({ between, client, isStored = false, name, ...given }: Talk): Promise<PromptCaches> => {
  const caches = new PromptCaches()
  farm.answer(name, (request, index) => cachedReply(request, caches.read(request), says(index)))
  let gateway = given.gateway
  let items: ReadonlyArray<unknown> = []
  let previous: string | undefined = isStored ? "" : undefined
  let calls: ReadonlyArray<Call> = []
  for (let turn = 0; turn < turns; turn++) {
    gateway = await between?.(turn) ?? gateway
    const next = calls.length > 0
      ? calls.map((call) => client.result(call, `Result ${turn}.`))
      : [client.user(`Question ${turn}?`)]
    items = isStored ? next : [...items, ...next]
    const response = await fetch(gateway.url + client.path.replace("/m:", `/${name}:`), {
      method: "POST",
      headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json", "x-session-id": name },
      body: JSON.stringify({
        ...client.body(items, { previous }),
        ...(client.path.includes("/m:") ? {} : { model: name })
      })
    })
    const text = await response.text()
    assert.strictEqual(response.status, 200, text)
    const reply = JSON.parse(text) as Fields
    const taken = client.take(reply)
    calls = taken.calls
    if (isStored) previous = textOf(reply["id"])
    items = [...items, ...taken.items]
  }
  return caches
}

/** Each request of a server begins with the one before it. */
const assertBegins = (name: string) => {
  const seen = farm.seen(name).map(promptOf)
  assert.lengthOf(seen, turns)
  for (const [i, prompt] of seen.entries()) {
    if (i > 0) assert.deepStrictEqual(prompt.slice(0, seen[i - 1]!.length), seen[i - 1], `${name}: turn ${i}`)
  }
}

/** The least share of the prompts' tokens that the cache has. It has all of each earlier prompt; the rest is new. */
const leastRate = 0.92

const rows = Object.keys(clients).flatMap((style) =>
  drivers.map((driver) => [style, driver, `${style}-${driver}`] as const)
)

describe("a conversation of twenty turns", () => {
  let gateway: RunningGateway
  beforeAll(async () => {
    gateway = await startGateway(
      configOf([...rows.map(([, driver, name]) => [name, driver] as const), ["stored", "openai"], [
        "held",
        "responses"
      ]], [
        "k1",
        "k2",
        "k3"
      ])
    )
  })
  afterAll(() => gateway.stop())

  it.each(rows)(
    "of %s in front of %s keeps the bytes of its earlier turns, at one of three accounts",
    async (style, _, name) => {
      const caches = await talk({ gateway, client: clients[style]!, name })
      assertBegins(name)
      assert.strictEqual(new Set(farm.seen(name).map(({ key }) => key)).size, 1)
      assert.isAtLeast(caches.hitRate, leastRate)
    }
  )

  it("that continues stored responses keeps them", async () => {
    const caches = await talk({ gateway, client: responses, name: "stored", isStored: true })
    assertBegins("stored")
    assert.isAtLeast(caches.hitRate, leastRate)
  })

  it("keeps them after a restart of the gateway", async () => {
    const names = drivers.map((driver) => [`again-${driver}`, driver] as const)
    const config = configOf(names, ["k1"])
    let running = await startGateway(config)
    for (const [name, driver] of names) {
      await talk({
        gateway: running,
        client: clients[driver === "openai" ? "chat" : driver]!,
        name,
        between: async (turn) => {
          if (turn !== 10) return undefined
          await running.stop()
          return running = await startGateway(config)
        }
      })
      assertBegins(name)
    }
    await running.stop()
  })
})
