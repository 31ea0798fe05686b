/**
 * What the gateway does in the background, with two upstreams of the same driver: each server sees the credentials of its own accounts alone.
 * `credentials.test.ts` has upstreams of different drivers, and changes of the configuration.
 */
import { afterEach, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import type { RawConfig } from "../../src/config/json.ts"
import { make, type Reference } from "../../src/testing/Reference.ts"
import { admin } from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import { makeMovedClock, type MovedClock } from "../support/movedClock.ts"
import { json, type OpenAiServer } from "../support/openaiServer.ts"
import { startTap, type Tap } from "../support/tap.ts"
import { untilHolds } from "../support/until.ts"
import { chat, type DriverName, post, startAnswering } from "./support.ts"

const names = ["one", "two"] as const
type Name = typeof names[number]

const secretsOf = (name: Name) => [`key-of-${name}`, `password-of-${name}`, `a@${name}.example`, `header-of-${name}`]

/** A gateway in front of two upstreams of one driver. */
interface Site {
  readonly clock: MovedClock
  readonly gateway: RunningGateway
  readonly taps: Readonly<Record<Name, Tap>>
  readonly servers: ReadonlyArray<OpenAiServer>
  readonly references: ReadonlyArray<Reference["Service"]>
}

type Kind = DriverName | "session"

const paths: Readonly<Record<Kind, string>> = {
  openai: "/v1",
  responses: "/v1",
  messages: "",
  generate: "/v1beta",
  session: ""
}

let ends: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const end of ends.toReversed()) await end()
  ends = []
})

const modelOf = (kind: Kind, name: Name) => kind === "session" ? `${name}/upstream-chat` : `model-of-${name}`

const start = async (kind: Kind, account: (name: Name) => RawConfig, rest: RawConfig): Promise<Site> => {
  const scope = Scope.makeUnsafe()
  ends.push(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const servers: Array<OpenAiServer> = []
  const references: Array<Reference["Service"]> = []
  const portOf = async () => {
    if (kind !== "session") {
      const server = await startAnswering()
      ends.push(server.stop)
      servers.push(server)
      return Number(new URL(server.baseUrl).port)
    }
    const reference = await Effect.runPromise(make({ anyToken: true }))
    references.push(reference)
    return Number(new URL(await Effect.runPromise(Scope.provide(reference.listen(), scope))).port)
  }
  const tapOf = async () => {
    const tap = await startTap(await portOf())
    ends.push(tap.stop)
    return tap
  }
  const taps = { one: await tapOf(), two: await tapOf() }
  const clock = makeMovedClock({ still: true })
  const gateway = await startGateway({
    upstreams: Object.fromEntries(names.map((name) => [name, {
      driver: kind,
      base_url: `http://127.0.0.1:${taps[name].port}${paths[kind]}`,
      headers: { "X-Title": `header-of-${name}` },
      ...(kind === "session" ? {} : { models: { [modelOf(kind, name)]: "m" } })
    }])),
    accounts: names.map((name) => ({ upstream: name, ...account(name) })),
    ...rest
  }, { clock })
  ends.push(gateway.stop)
  return { clock, gateway, taps, servers, references }
}

const login = (name: Name): RawConfig => ({ email: `a@${name}.example`, password: `password-of-${name}` })
const key = (name: Name): RawConfig => ({ token: `key-of-${name}` })

const askEach = async ({ gateway }: Site, kind: Kind) => {
  for (const name of names) {
    const { body, status } = await chat(gateway, modelOf(kind, name))
    assert.strictEqual(status, 200, body)
  }
}

/** Resolves once every upstream's list was read since the taps were cleared, and is to be read again after ten minutes. */
const listsRead = ({ clock, taps }: Site) =>
  untilHolds(() =>
    names.every((name) => /^GET \S*\/models/m.test(taps[name].sent())) &&
    clock.sleeping().filter((millis) => millis === 600_000).length === names.length
  )

const clear = ({ taps }: Site) => names.forEach((name) => taps[name].clear())

const sees = ({ taps }: Site, name: Name, secret: string): boolean => taps[name].sent().includes(secret)

interface Work {
  readonly what: string
  readonly kinds: ReadonlyArray<Kind>
  readonly account?: (name: Name) => RawConfig
  readonly config?: RawConfig
  /** Does the work. What comes before it is forgotten by `clear`. */
  readonly run: (site: Site, kind: Kind) => Promise<void>
}

const servers = ["openai", "messages", "generate"] as const

const works: ReadonlyArray<Work> = [
  { what: "the reading of lists of models at the start", kinds: servers, run: listsRead },
  {
    what: "the reading of lists of models ten minutes later",
    kinds: servers,
    run: async (site) => {
      await listsRead(site)
      clear(site)
      site.clock.move(600_000)
      await listsRead(site)
    }
  },
  {
    what: "the refresh of tokens",
    kinds: ["session"],
    account: login,
    config: { runtime: { token_refresh_interval_hours: 1 } },
    run: async (site, kind) => {
      await askEach(site, kind)
      clear(site)
      site.clock.move(2 * 3_600_000)
      await askEach(site, kind)
      await untilHolds(() => names.every((name) => sees(site, name, `password-of-${name}`)))
    }
  },
  {
    what: "the trial of accounts that were refused",
    kinds: servers,
    run: async (site, kind) => {
      await listsRead(site)
      const refused = json(401, { error: { message: "no" } })
      for (const server of site.servers) {
        server.answer(() => refused)
        server.list(() => refused)
      }
      for (const name of names) assert.notStrictEqual((await chat(site.gateway, modelOf(kind, name))).status, 200)
      clear(site)
      site.clock.move(600_000)
      await untilHolds(() => names.every((name) => sees(site, name, `key-of-${name}`)))
    }
  },
  {
    what: "tests of accounts",
    kinds: [...servers, "session"],
    run: async (site) => {
      if (site.servers.length > 0) await listsRead(site)
      clear(site)
      await admin(site.gateway.url, "POST", "/admin/accounts/test-all", {})
    }
  },
  {
    what: "tests of upstreams",
    kinds: [...servers, "session"],
    run: async (site) => {
      if (site.servers.length > 0) await listsRead(site)
      clear(site)
      for (const name of names) {
        const tested = await admin(site.gateway.url, "POST", `/admin/upstreams/${name}/test`)
        assert.deepInclude(tested, { success: true }, String(tested["message"]))
      }
    }
  },
  {
    what: "the deletion of sessions",
    kinds: ["session"],
    config: { auto_delete: { mode: "all" } },
    run: async (site, kind) => {
      await askEach(site, kind)
      await untilHolds(async () => {
        const reports = await Promise.all(site.references.map(({ report }) => Effect.runPromise(report)))
        return reports.every(({ sessions }) => sessions.deleted > 0)
      })
    }
  },
  {
    what: "the counting of tokens",
    kinds: ["messages", "generate"],
    run: async (site, kind) => {
      await listsRead(site)
      clear(site)
      for (const name of names) {
        const messages = [{ role: "user", content: "Hi" }]
        const model = modelOf(kind, name)
        const { body, status } = await post(site.gateway, "/v1/messages/count_tokens", { model, messages })
        assert.strictEqual(status, 200, body)
      }
    }
  }
]

describe("each of two servers sees the credentials of its own accounts alone", () => {
  it.each(works.flatMap((work) => work.kinds.map((kind) => ({ ...work, kind }))))(
    "by $what ($kind)",
    async ({ account = key, config = {}, kind, run }) => {
      const site = await start(kind, account, config)
      await run(site, kind)
      const all = names.flatMap(secretsOf)
      for (const name of names) {
        const seen = all.filter((secret) => sees(site, name, secret))
        assert.include(seen, `header-of-${name}`)
        assert.isAbove(seen.length, 1, "a credential beside the header")
        assert.isEmpty(seen.filter((secret) => !secretsOf(name).includes(secret)), name)
      }
    }
  )
})
