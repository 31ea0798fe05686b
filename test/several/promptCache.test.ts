/** Why a turn of a conversation missed the cache of its server, as records, facets, usage and metrics tell it. */
import { afterAll, afterEach, assert, beforeAll, describe, it } from "@effect/vitest"
import { Context, Effect } from "effect"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock } from "../support/movedClock.ts"
import { cachedReply, PromptCaches } from "../support/promptCacheServer.ts"
import { untilHolds } from "../support/until.ts"
import { type Farm, json, type SeenRequest, startFarm } from "./support.ts"

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
})
afterAll(() => farm.stop())
afterEach(() => gateway.stop())

interface Item {
  readonly id: string
  readonly outcome: string
  readonly account: string
  readonly prompt_cache?: Readonly<Record<string, unknown>>
}

const admin = async (path: string) => {
  const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${adminKey}` } })
  return JSON.parse(await response.text()) as never
}

/** The newest record, once it is over. */
const newest = async (): Promise<Item> => {
  let found: Item | undefined
  await untilHolds(async () => {
    const { items } = await admin("/admin/requests?limit=1") as { readonly items: ReadonlyArray<Item> }
    found = items[0]
    return found?.outcome !== "open"
  })
  return found!
}

const words = "many words make a prompt that a server keeps ".repeat(40)
const tool = (name: string) => ({ type: "function", function: { name, parameters: { type: "object" } } })

interface Asked {
  readonly said: ReadonlyArray<string>
  readonly tools?: ReadonlyArray<string>
  readonly session?: string
  readonly account?: string
  readonly model?: string
}

const post = async (session: string, { account, model = "m", said, tools = ["ant", "zebra"] }: Asked) => {
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${businessKey}`,
      "x-session-id": session,
      ...(account === undefined ? {} : { "x-gateway-target-account": account })
    },
    body: JSON.stringify({
      model,
      tools: tools.map(tool),
      messages: [
        { role: "system", content: words },
        ...said.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content }))
      ]
    })
  })
  assert.strictEqual(response.status, 200, await response.text())
}

/** Asks, and returns what the record says of the cache. */
const ask = async ({ session = "s", ...asked }: Asked) => {
  await post(session, asked)
  return (await newest()).prompt_cache
}

/** Starts a gateway with one or two accounts in front of a server with a cache for each. */
const start = async (
  name: string,
  keys: ReadonlyArray<string>,
  given: { readonly config?: RawConfig; readonly upstream?: RawConfig } = {}
) => {
  const clock = makeMovedClock()
  const caches = new PromptCaches()
  farm.answer(name, (request) => cachedReply(request, caches.read(request), { text: "Yes." }))
  gateway = await startGateway({
    keys: [businessKey],
    upstreams: { [name]: farm.upstream(name, { models: ["m", "n"], ...given.upstream }) },
    accounts: keys.map((token) => ({ upstream: name, token })),
    ...given.config
  }, { clock })
  return { caches, clock }
}

const turns = ["one", "Yes.", "two", "Yes.", "three", "Yes.", "four"]

describe("the prompt cache of a turn", () => {
  it("has its prediction and its reason in records, facets, usage and metrics", async () => {
    const { caches, clock } = await start("told", ["k1"])
    const first = await ask({ said: turns.slice(0, 1) })
    assert.deepInclude(first, { read: 0, predicted: 0, result: "none", reason: "first_turn", at: null, because: null })
    const second = await ask({ said: turns.slice(0, 3) })
    assert.deepInclude(second, { predicted: first!["prompt"], result: "hit", reason: null, age_s: null })
    assert.isAtLeast(Number(second!["read"]), Number(first!["prompt"]))
    const changed = await ask({ said: turns.slice(0, 5), tools: ["ant", "lion"] })
    assert.deepInclude(changed, { read: 0, result: "miss", reason: "changed", at: "tools[1]" })
    clock.move(3_601_000)
    assert.deepInclude(await ask({ said: turns.slice(0, 5), tools: ["ant", "lion"] }), {
      result: "hit",
      reason: null,
      predicted: 0
    })
    clock.move(3_601_000)
    caches.forget()
    assert.deepInclude(await ask({ said: turns, tools: ["ant", "lion"] }), { reason: "expired", age_s: 3_601 })
    caches.forget()
    const missed = await ask({ said: turns, tools: ["ant", "lion"] })
    assert.deepInclude(missed, { read: 0, result: "miss", reason: "not_kept" })

    const listed = async (wanted: string) =>
      (await admin(`/admin/requests?prompt_cache=${wanted}`) as { readonly items: ReadonlyArray<Item> }).items.length
    assert.deepStrictEqual(await Promise.all(["miss", "hit", "none", "changed", "moved"].map(listed)), [2, 2, 2, 1, 0])
    const { facets } = await admin("/admin/requests/facets") as {
      readonly facets: { readonly prompt_cache: ReadonlyArray<{ readonly value: string; readonly count: number }> }
    }
    assert.deepStrictEqual(
      facets.prompt_cache.map(({ count, value }) => [value, count]),
      [["changed", 1], ["expired", 1], ["first_turn", 1], ["not_kept", 1]]
    )
    const predicted = [second, changed, missed].reduce((sum, told) => sum + Number(told!["predicted"]), 0)
    for (const by of ["account", "model", "upstream", "key", "session"]) {
      const { rows, totals } = await admin(`/admin/usage?by=${by}`) as {
        readonly rows: ReadonlyArray<Readonly<Record<string, number>>>
        readonly totals: Readonly<Record<string, number>>
      }
      for (const name of ["predicted_tokens", "prompt_cache_misses", "cached_tokens", "prompt_tokens"]) {
        assert.strictEqual(rows.reduce((sum, row) => sum + row[name]!, 0), totals[name], `${by} ${name}`)
      }
      assert.deepInclude(totals, { predicted_tokens: predicted, prompt_cache_misses: 2 })
      assert.approximately(totals["prompt_cache_hit_rate"]!, caches.hitRate, 1e-9)
    }
    const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${adminKey}` } })
    const lines = (await metrics.text()).split("\n")
    assert.include(lines, "gateway_prompt_cache_misses_total{reason=\"not_kept\",upstream=\"told\"} 1")
    assert.include(
      lines,
      `gateway_prompt_cache_tokens_total{kind="predicted",upstream="told",model="m"} ${predicted}`
    )
  })

  it("says why another account answered", async () => {
    const { caches, clock } = await start("moves", ["k1", "k2"], {
      upstream: { account_max_inflight: 1 },
      config: { routes: { rotating: { targets: ["moves/m"], sticky: false } } }
    })
    /** The key that the server refuses, with the status. */
    let refused: readonly [key: string, status: number] | undefined
    let waits: Promise<void> | undefined
    farm.answer("moves", (request: SeenRequest) => {
      if (request.key === refused?.[0]) return json(refused![1], { error: { message: "no" } }, { "retry-after": "600" })
      const reply = cachedReply(request, caches.read(request), { text: "Yes." })
      const pieces = waits === undefined ? reply.pieces : [waits, ...reply.pieces ?? []]
      waits = undefined
      return { ...reply, pieces }
    })
    const lastKey = () => farm.seen("moves").at(-1)!.key!
    let sessions = 0
    /** Opens a session; returns it with its account. */
    const open = async (model = "m") => {
      const session = `s${++sessions}`
      await ask({ said: [session], session, model })
      return { session, model, key: lastKey(), account: (await newest()).account }
    }
    type Opened = Awaited<ReturnType<typeof open>>
    const next = ({ model, session }: Opened, more: Partial<Asked> = {}) =>
      ask({ said: [session, "Yes.", "two"], session, model, ...more })
    const other = ({ account }: Opened) => accounts.find((identifier) => identifier !== account)!
    const moved = async (opened: Opened, because: string, more: Partial<Asked> = {}) => {
      caches.forget()
      const told = await next(opened, more)
      if (because !== "target") assert.notStrictEqual(lastKey(), opened.key, because)
      assert.deepInclude(told, { predicted: 0, result: "none", reason: "moved", because })
    }
    const { items } = await admin("/admin/accounts") as {
      readonly items: ReadonlyArray<{ readonly identifier: string }>
    }
    const accounts = items.map(({ identifier }) => identifier)

    const pinned = await open()
    await moved(pinned, "pinned", { account: other(pinned) })
    await moved(await open(), "target", { model: "n" })
    await moved(await open("rotating"), "priority")

    const full = await open()
    let free = () => {}
    waits = new Promise((resolve) => {
      free = resolve
    })
    const running = post("busy", { said: ["busy"], account: full.account })
    await farm.server.until((requests) => requests.some(({ outcome }) => outcome === "open"))
    await moved(full, "full")
    free()
    await running

    const limited = await open()
    refused = [limited.key, 429]
    await moved(limited, "quota")
    refused = undefined
    clock.move(601_000)

    const disabled = await open()
    const store = Context.get(gateway.services, ConfigStore)
    const disable = (is: boolean) =>
      Effect.runPromise(store.update((raw) =>
        Effect.succeed({
          ...raw,
          accounts: ["k1", "k2"].map((token) => ({
            upstream: "moves",
            token,
            ...(is && token === disabled.key ? { disabled: true } : {})
          }))
        })
      ))
    await disable(true)
    await moved(disabled, "disabled")
    await disable(false)

    const out = await open()
    refused = [out.key, 401]
    await moved(out, "out")
  })
})
