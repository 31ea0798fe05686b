import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { allowedRoutes, allowsRoute, allowsSome } from "../../src/domain/allowedRoutes.ts"
import { familyModel, isServersOwnName, nativeModels } from "../../src/domain/models.ts"
import { routeFaults } from "../../src/domain/routeFaults.ts"
import { cataloguedRoutes, listedRoutes } from "../../src/domain/routeLists.ts"
import { routeNotFound } from "../../src/domain/routeNotFound.ts"
import {
  makeRouteTable,
  type NameFamily,
  resolveRoute,
  type RouteConfig,
  type RouteTable,
  targetText,
  withListed
} from "../../src/domain/routes.ts"
import { runs } from "../support/effort.ts"

const model = (id: string) => ({ id, reasoning: "auto" as const, search: false })
const upstream = (name: string, ...ids: ReadonlyArray<string>) => ({
  name,
  driver: "openai",
  isHome: false,
  enabled: true,
  models: ids.map(model)
})
const mapping = { fast: "upstream-chat", slow: "upstream-reasoner" }

const config = (changes: Partial<RouteConfig>): RouteConfig => ({
  upstreams: [
    { ...upstream("default"), driver: "session" },
    upstream("gpu", "Qwen3"),
    upstream("hosted", "qwen3", "large")
  ],
  unnamed: "default",
  routes: [],
  aliases: new Map(),
  mapping,
  families: true,
  mapped: undefined,
  listed: undefined,
  ...changes
})

const answerOf = (table: RouteTable, name: string, family: NameFamily = "usual") =>
  resolveRoute(table, family, name)?.targets.map((target) => `${target.upstream}/${target.model.id}`)

/** The rules in the simplest form: every look-up scans the configuration. Without an enabled target a name stands for nothing. */
const naive = (config: RouteConfig, family: NameFamily, requested: string): ReadonlyArray<string> | undefined => {
  const targets = meant(config, family, requested)
  const enabled = config.upstreams.filter(({ enabled }) => enabled)
  return targets?.some((target) => enabled.some(({ name }) => target.startsWith(`${name}/`))) === true
    ? targets
    : undefined
}

const meant = (config: RouteConfig, family: NameFamily, requested: string): ReadonlyArray<string> | undefined => {
  const same = (one: string, other: string) => one.trim().toLowerCase() === other.trim().toLowerCase()
  const modelsOf = (upstream: RouteConfig["upstreams"][number]) => [
    ...(upstream.driver === "session" || upstream.name === "default" ? nativeModels.map(({ id }) => id) : []),
    ...upstream.models.map(({ id }) => id)
  ]
  const targetNamed = (name: string) =>
    config.upstreams.flatMap((upstream) => {
      const found = modelsOf(upstream).find((id) => same(`${upstream.name}/${id}`, name))
      return found === undefined ? [] : [`${upstream.name}/${found}`]
    })
  const served = (name: string) => {
    const route = config.routes.find((route) => same(route.name, name))
    const targets =
      route?.targets.map(targetText).flatMap((target) =>
        targetNamed(target.includes("/") ? target : `${target}/${route.name.trim()}`)
      ) ?? []
    if (targets.length > 0) return targets
    const listing = config.upstreams.flatMap((upstream) => targetNamed(`${upstream.name}/${name.trim()}`))
    return listing.length === 0 ? undefined : listing
  }
  const isSeveral = config.routes.length > 0 || config.upstreams.some(({ name }) => name !== "default")
  /** A model, a route or a target. */
  const named = (name: string): ReadonlyArray<string> | undefined => {
    const target = isSeveral ? targetNamed(name) : []
    return served(name) ?? (target.length > 0 ? target : undefined)
  }
  const own = named(requested)
  if (own !== undefined) return own
  const aliased = [...config.aliases].find(([alias]) => same(alias, requested))
  const behind = aliased && named(aliased[1])
  if (behind !== undefined) return behind
  if (isSeveral && config.upstreams.some(({ name }) => requested.trim().toLowerCase().startsWith(`${name}/`))) {
    return undefined
  }
  if (family === "mapped" && /^\s*(?:claude|msgcompat)-/i.test(requested)) {
    return named(/opus|reasoner|slow/i.test(requested) ? config.mapping.slow : config.mapping.fast)
  }
  const vendorFields = config.families ? familyModel(requested.trim().toLowerCase()) : undefined
  const targets = vendorFields && served(vendorFields.id)
  const first = targets && config.upstreams.find(({ name }) => targets[0]!.startsWith(`${name}/`))
  return first?.driver === "openai" && isServersOwnName(requested.trim().toLowerCase()) ? undefined : targets
}

const ids = ["qwen3", "Qwen3", "large", "gpu/large", "upstream-chat", "upstream-reasoner", "claude-x"]
const upstreamNames = ["gpu", "hosted", "claude-x"]
const named = upstreamNames.map((name) =>
  fc.record({
    name: fc.constant(name),
    driver: fc.constantFrom("openai", "session"),
    isHome: fc.boolean(),
    enabled: fc.boolean(),
    models: fc.subarray(ids).map((ids) => ids.map(model))
  })
)
const first = fc.record({
  name: fc.constant("default"),
  driver: fc.constantFrom("openai", "session", "embedded"),
  isHome: fc.boolean(),
  enabled: fc.boolean(),
  models: fc.subarray(ids).map((ids) => ids.map(model))
})
const configs: fc.Arbitrary<RouteConfig> = fc.record({
  upstreams: fc.tuple(first, ...named).chain((all) => fc.subarray(all)),
  unnamed: fc.constant("default"),
  routes: fc.uniqueArray(
    fc.record({
      name: fc.constantFrom("qwen3", "smart", "upstream-chat", "a/b"),
      targets: fc.array(
        fc.oneof(
          fc.constantFrom("default", "gpu", "hosted"),
          fc.tuple(fc.constantFrom("default", ...upstreamNames), fc.constantFrom(...ids)).map(([a, b]) => `${a}/${b}`)
        ),
        { minLength: 1, maxLength: 4 }
      )
    }),
    { selector: ({ name }) => name, maxLength: 3 }
  ),
  aliases: fc.dictionary(
    fc.constantFrom("quick", "gpt-4o", "gpu/none"),
    fc.constantFrom(...ids, "smart", "hosted/large", "GPU/Qwen3")
  ).map((
    aliases
  ) => new Map(Object.entries(aliases))),
  mapping: fc.record({ fast: fc.constantFrom(...ids), slow: fc.constantFrom(...ids, "smart", "hosted/large") }),
  families: fc.boolean(),
  mapped: fc.constant(undefined),
  listed: fc.constant(undefined)
})
const names = fc.oneof(
  fc.constantFrom(
    ...ids,
    "smart",
    "quick",
    "gpt-4o",
    "o3",
    "a/b",
    "gpu/none",
    "CLAUDE-opus",
    "msgcompat-y",
    "unknown",
    ""
  ),
  fc.tuple(fc.constantFrom("default", "GPU", "hosted", "claude-x"), fc.constantFrom(...ids)).map(([a, b]) =>
    `${a}/${b}`
  )
)
const families = fc.constantFrom<NameFamily>("usual", "mapped", "embeddings")

describe("routes", () => {
  it("resolve names like the plain model under any configuration", () => {
    fc.assert(
      fc.property(configs, fc.array(fc.tuple(families, names), { maxLength: 12 }), (config, asked) => {
        const table = makeRouteTable(config)
        for (const [family, name] of asked) {
          assert.deepStrictEqual(answerOf(table, name, family), naive(config, family, name), `${family} ${name}`)
        }
      }),
      { numRuns: runs(500) }
    )
  })

  it("list each resolvable model and route once, and a key sees exactly what it allows", () => {
    fc.assert(
      fc.property(configs, fc.array(names, { maxLength: 3 }), names, (config, models, asked) => {
        const table = makeRouteTable(config)
        const all = listedRoutes(table).map(({ id }) => id)
        assert.strictEqual(new Set(all.map((id) => id.toLowerCase())).size, all.length)
        for (const id of all) assert.strictEqual(resolveRoute(table, "usual", id)?.id, id)
        const allowed = allowedRoutes(table, models)
        for (const { id } of listedRoutes(table, allowed)) {
          const route = resolveRoute(table, "usual", id)
          assert.isTrue(route !== undefined && allowsRoute(allowed, route), id)
        }
        const route = resolveRoute(table, "usual", asked)
        if (route !== undefined && models.includes(asked)) assert.isTrue(allowsRoute(allowed, route))
      }),
      { numRuns: runs(300) }
    )
  })

  it("list only names that resolve, each once, whatever the server lists", () => {
    fc.assert(
      fc.property(configs, fc.array(names), fc.array(names, { maxLength: 3 }), (config, listed, models) => {
        const table = withListed(makeRouteTable(config), listed)
        const all = listedRoutes(table).map(({ id }) => id.trim().toLowerCase())
        assert.strictEqual(new Set(all).size, all.length)
        for (const id of all) assert.isDefined(resolveRoute(table, "usual", id), id)
        const allowed = allowedRoutes(table, models)
        for (const { id } of listedRoutes(table, allowed)) {
          const route = resolveRoute(table, "usual", id)
          assert.isTrue(route !== undefined && allowsRoute(allowed, route), id)
        }
      }),
      { numRuns: runs(300) }
    )
  })

  it("serve a model by its route, else by every upstream that lists it, in the order of the file", () => {
    assert.deepStrictEqual(answerOf(makeRouteTable(config({})), " QWEN3"), ["gpu/Qwen3", "hosted/qwen3"])
    const table = makeRouteTable(config({
      routes: [
        { name: "qwen3", targets: ["hosted", "gpu"] },
        { name: "smart", targets: ["hosted/large", "default/upstream-reasoner"] },
        { name: "upstream-chat", targets: ["hosted/large"] }
      ],
      aliases: new Map([["best", "smart"], ["big", "Hosted/Large"]])
    }))
    assert.deepStrictEqual(answerOf(table, "qwen3"), ["hosted/qwen3", "gpu/Qwen3"])
    assert.deepStrictEqual(answerOf(table, "best"), ["hosted/large", "default/upstream-reasoner"])
    assert.deepStrictEqual(answerOf(table, "big"), ["hosted/large"])
    assert.deepStrictEqual(answerOf(table, "gpt-4o"), ["hosted/large"])
    assert.deepStrictEqual(answerOf(table, "claude-sonnet", "mapped"), ["hosted/large"])
    assert.deepStrictEqual(answerOf(table, "default/upstream-chat"), ["default/upstream-chat"])
    assert.deepStrictEqual(answerOf(table, "text-embedding-3-small", "embeddings"), ["default/text-embedding-3-small"])
  })

  it("without a default upstream, native names and families resolve only to models that are listed", () => {
    const table = makeRouteTable(config({ upstreams: [upstream("gpu", "qwen3", "upstream-reasoner")] }))
    assert.deepStrictEqual(answerOf(table, "o3"), ["gpu/upstream-reasoner"])
    for (const name of ["upstream-chat", "gpt-4o"]) assert.isUndefined(answerOf(table, name), name)
    assert.isUndefined(answerOf(table, "text-embedding-3-small", "embeddings"))
    assert.deepStrictEqual(listedRoutes(table).map(({ id }) => id), ["upstream-reasoner", "qwen3"])
  })

  it("a name that addresses an upstream is unknown rather than a family's, and the error names the upstream's models", () => {
    const many = Array.from({ length: 23 }, (_, i) => `m${i}`)
    const table = makeRouteTable(config({ upstreams: [upstream("claude-x", "a", "b"), upstream("gpt-y", ...many)] }))
    assert.isUndefined(answerOf(table, "claude-x/opus", "mapped"))
    assert.strictEqual(
      routeNotFound(table, undefined, "claude-x/opus").message,
      `The model "claude-x/opus" does not exist: the upstream "claude-x" has "a", "b"`
    )
    assert.match(routeNotFound(table, undefined, "gpt-y/z").message, /"m19" and 3 more$/)
  })

  it("errors of unknown names tell only what the key may use", () => {
    const table = makeRouteTable(config({
      upstreams: [upstream("one", "plain", "plain-2", "other"), upstream("two", "plain-3")],
      aliases: new Map([["plainly", "two/plain-3"], ["plains", "one/plain-2"]])
    }))
    const told = (models: ReadonlyArray<string>, name: string) =>
      routeNotFound(table, allowedRoutes(table, models), name).message.replace(/^The model "[^"]*" does not exist/, "")
    assert.strictEqual(told(["plain-2"], "plain"), `; did you mean "plain-2"?`)
    assert.strictEqual(told(["one/plain-2"], "plain"), `; did you mean "one/plain-2" or "plains"?`)
    assert.strictEqual(told(["other"], "plain"), "; GET /v1/models lists the models")
    assert.strictEqual(told(["one/other"], "one/plain"), `: the upstream "one" has "other"`)
    assert.strictEqual(told(["plain-3"], "one/plain-3"), "; GET /v1/models lists the models")
  })

  it("names that only a disabled upstream has stand for nothing until it is enabled, and a key may name them", () => {
    const off = { ...upstream("off", "gone", "both"), enabled: false }
    const disabled = config({
      upstreams: [off, { ...upstream("on"), models: [{ id: "both", reasoning: true, search: true }] }],
      routes: [{ name: "away", targets: ["off/gone"] }, { name: "mixed", targets: ["off/gone", "on/both"] }],
      aliases: new Map([["alias", "gone"]])
    })
    const table = makeRouteTable(disabled)
    const all = (table: RouteTable) => listedRoutes(table).map(({ id }) => id)
    assert.deepStrictEqual(all(table), ["both", "mixed"])
    assert.deepStrictEqual(cataloguedRoutes(table).map(({ id }) => id), ["both", "mixed"])
    for (const name of ["gone", "off/gone", "off/both", "away", "alias"]) {
      assert.isUndefined(resolveRoute(table, "usual", name), name)
      assert.isTrue(allowsSome(table, name), name)
    }
    for (const name of ["gon", "off/x", "alia", "awa"]) {
      assert.notMatch(routeNotFound(table, undefined, name).message, /"gone"|"alias"|"away"|upstream "off"/)
    }
    assert.deepInclude(resolveRoute(table, "usual", "both"), { reasoning: true, search: true })
    assert.deepInclude(resolveRoute(table, "usual", "mixed"), { reasoning: true, search: true })
    assert.deepStrictEqual(listedRoutes(table, allowedRoutes(table, ["off/*", "gone"])).map(({ id }) => id), [])
    const enabled = makeRouteTable({
      ...disabled,
      upstreams: [upstream("off", "gone", "both"), disabled.upstreams[1]!]
    })
    assert.sameMembers(all(enabled), ["gone", "both", "away", "mixed"])
  })

  it("the targets of a native name keep the flags of that name", () => {
    const table = makeRouteTable(config({ routes: [{ name: "upstream-reasoner-search", targets: ["hosted/large"] }] }))
    assert.deepStrictEqual(resolveRoute(table, "usual", "o3-search")?.targets[0]?.model, {
      id: "large",
      reasoning: true,
      search: true
    })
  })

  it("a key allows what it names: a route by its own name alone, and all targets of an upstream by a star", () => {
    const table = makeRouteTable(config({ routes: [{ name: "smart", targets: ["hosted/large", "gpu/qwen3"] }] }))
    const allows = (models: ReadonlyArray<string>, name: string) => {
      const route = resolveRoute(table, "usual", name)
      return route !== undefined && allowsRoute(allowedRoutes(table, models), route)
    }
    assert.isTrue(allows(["smart"], "smart"))
    assert.isFalse(allows(["smart"], "hosted/large"))
    assert.isTrue(allows(["smart", "hosted/large"], "hosted/large"))
    assert.isFalse(allows(["smart"], "large"))
    assert.isFalse(allows(["smart"], "hosted/qwen3"))
    assert.isFalse(allows(["large"], "hosted/large"))
    assert.isFalse(allows(["hosted/large"], "large"))
    assert.isTrue(allows(["Hosted/*"], "hosted/large"))
    assert.isFalse(allows(["hosted/*"], "gpu/qwen3"))
    const shown = (...models: ReadonlyArray<string>) =>
      listedRoutes(table, allowedRoutes(table, models)).map(({ id }) => id)
    assert.deepStrictEqual(shown("smart"), ["smart"])
    assert.deepStrictEqual(shown("hosted/*", "qwen3"), ["Qwen3", "hosted/qwen3", "hosted/large"])
  })

  it("faults of routes are reported with their place", () => {
    assert.deepStrictEqual(
      routeFaults(config({
        routes: [
          { name: "smart", targets: ["hosted/large", "Hosted/LARGE", "smart", "gpu", "none/x"] },
          { name: " SMART", targets: ["hosted/large"] },
          { name: "gpu/qwen3", targets: ["hosted/qwen3"] }
        ]
      })).map(({ message, route, target }) => [route, target, message]),
      [
        ["smart", 1, "is the same target twice"],
        ["smart", 2, "must be upstream/model or an upstream of the configuration"],
        ["smart", 3, "names no model of the upstream gpu"],
        ["smart", 4, "must be upstream/model or an upstream of the configuration"],
        [" SMART", undefined, "is named twice, but for case and blanks"],
        ["gpu/qwen3", undefined, "must not begin with an upstream's name"]
      ]
    )
  })
})
