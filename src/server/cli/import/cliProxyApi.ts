/**
 * The configuration of CLIProxyAPI as one of this gateway: https://help.router-for.me/configuration/options.
 */
import type { RawConfig } from "../../../config/json.ts"
import type { UpstreamProtocol } from "../../../contracts/drivers.ts"
import { effortLevels, longestName, modalities } from "../../../domain/modelFacts.ts"
import { normalizeModelName } from "../../../domain/models.ts"
import { Draft, type DraftUpstream, sharesOf } from "./Draft.ts"
import { Fields, type Report } from "./Report.ts"
import { addressOf, headersOf, literal, noWildcards, proxyOf } from "./values.ts"

/** The lists of keys by vendor: how their servers are spoken to, and where they are by default. */
const vendors = [
  ["claude-api-key", "claude", "messages", "https://api.anthropic.com"],
  ["gemini-api-key", "gemini", "generate", "https://generativelanguage.googleapis.com"],
  ["codex-api-key", "codex", "responses", undefined],
  ["xai-api-key", "xai", "responses", "https://api.x.ai/v1"]
] as const satisfies ReadonlyArray<readonly [string, string, UpstreamProtocol, string | undefined]>

const tries = "a target has three tries, and a request eight"
const cooling = "failing servers and keys are left out by rules of the gateway"
const logins = "accounts are keys here: give logins of vendors by credential caller, or as keys"
const asSent = "requests reach servers of their protocol as they were sent"
const logs = "logs, metrics and records have settings of their own"

const reasons: { readonly [name: string]: string } = {
  "auth-dir": logins,
  "oauth-model-alias": logins,
  "oauth-excluded-models": logins,
  "oauth-request-scoped-errors": logins,
  "vertex-api-key": "this protocol of Vertex is not spoken here",
  "interactions-api-key": "this protocol is not spoken here",
  "remote-management": "the admin API has a key and tokens of its own: GATEWAY_ADMIN_KEY",
  "payload": asSent,
  "cloak": asSent,
  "fingerprint-profile": asSent,
  "claude-header-defaults": asSent,
  "codex-header-defaults": asSent,
  "disable-claude-cloak-mode": asSent,
  "rebuild-mid-system-message": asSent,
  "plugins": "there are no plugins here",
  "weight": "it counts only for the strategy weighted-round-robin",
  "request-retry": tries,
  "max-retry-credentials": tries,
  "max-retry-interval": tries,
  "disable-cooling": cooling,
  "transient-error-cooldown-seconds": cooling,
  "quota-exceeded": cooling,
  "request-scoped-errors": "routes.NAME.also_on says which refusals go on to the next target",
  "debug": logs,
  "logging-to-file": logs,
  "logs-max-total-size-mb": logs,
  "error-logs-max-files": logs,
  "usage-statistics-enabled": logs,
  "redis-usage-queue-retention-seconds": logs,
  "session-affinity-ttl": "a conversation is known for an hour after its last turn",
  "passthrough-headers": "headers of a server's replies have settings of their own: rate_limit_headers, errors",
  "ws-auth": "every request needs a key"
}

/** The most that an account's priority may be, and the least below zero. */
const mostPriority = 1_000

/** The most that the weight of a key may be. */
const mostWeight = 1_000_000

/** A pattern of names, in which `*` is any text. */
const matches = (pattern: string, name: string): boolean => {
  const [first = "", ...others] = normalizeModelName(pattern).split("*")
  const last = others.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let from = first.length
  for (const part of others) {
    const at = name.indexOf(part, from)
    if (at === -1) return false
    from = at + part.length
  }
  return name.length - last.length >= from && name.endsWith(last)
}

class CliProxyApi {
  readonly draft: Draft
  readonly #report: Report
  #proxy: string | undefined
  #needsPrefix = false
  /** Keys are used by their weights. */
  #weighs = false

  constructor(report: Report) {
    this.draft = new Draft(report)
    this.#report = report
  }

  /** The headers of an entry, and those of callers that it forwards. */
  #headers(
    entry: Fields
  ): { readonly headers: { readonly [name: string]: string }; readonly forwarded: Array<string> } {
    const forwarded: Array<string> = []
    const headers = headersOf(entry, "headers", (text, place, header) => {
      if (!text.startsWith("$")) return literal(text)
      if (text.slice(1).toLowerCase() === header.toLowerCase()) forwarded.push(header.toLowerCase())
      else this.#report.leftOut(place, "a client's header is forwarded under its own name alone: forward_headers")
      return undefined
    })
    return { headers, forwarded }
  }

  /** The names under which callers ask for a model of an entry. */
  #namesOf(name: string, prefix: string | undefined): ReadonlyArray<string> {
    if (prefix === undefined) return [name]
    return this.#needsPrefix ? [`${prefix}/${name}`] : [`${prefix}/${name}`, name]
  }

  /** The words of a list that are known here; the others are reported. */
  #words(fields: Fields | undefined, name: string, known: ReadonlyArray<string>): RawConfig[string] | undefined {
    const words = new Set(fields?.texts(name).map((word) => word.toLowerCase()))
    const kept = known.filter((word) => words.has(word))
    if (kept.length < words.size) this.#report.leftOut(fields!.at(name), "some of its words are not known here")
    return kept.length === 0 ? undefined : kept
  }

  /** Facts about a model for its entry. */
  #facts(model: Fields): RawConfig {
    const name = model.text("display-name")
    const window = model.amount("max-context-length")
    const thinking = model.object("thinking")
    const facts = {
      display_name: name !== undefined && name.length > longestName ? undefined : name,
      context_window: window === undefined ? undefined : Math.floor(window),
      input: this.#words(model, "input-modalities", modalities),
      output: this.#words(model, "output-modalities", modalities),
      efforts: this.#words(thinking, "levels", effortLevels)
    }
    thinking?.end()
    return Object.fromEntries(
      Object.entries(facts).flatMap(([name, fact]) => fact === undefined ? [] : [[name, fact]])
    )
  }

  #models(entry: Fields, upstream: DraftUpstream, prefix: string | undefined): void {
    const models = entry.objects("models")
    const excluded = entry.texts("excluded-models")
    for (const model of models) {
      const own = model.text("name")
      const name = model.text("alias") ?? own
      if (own === undefined || name === undefined) {
        this.#report.leftOut(model.place, "it has no name")
        continue
      }
      if (name.includes("*")) {
        this.#report.leftOut(model.place, noWildcards)
        continue
      }
      if (excluded.some((pattern) => matches(pattern, normalizeModelName(name)))) continue
      const fields = this.#facts(model)
      for (const asked of this.#namesOf(name, prefix)) {
        this.draft.deploy({
          upstream,
          name: asked,
          model: own,
          fields,
          info: undefined,
          order: 0,
          costs: undefined,
          weight: undefined
        })
      }
      // The reply has the name that the caller asked for.
      model.take("force-mapping")
      model.end(reasons)
    }
    if (models.length > 0) return
    if (prefix !== undefined) {
      this.#report.leftOut(entry.place, "it has a prefix and no models: name its models in the configuration")
      return
    }
    upstream.isOpen = true
    for (const index of excluded.keys()) {
      this.#report.leftOut(`${entry.place}.excluded-models[${index}]`, "all models that the server lists are served")
    }
  }

  /** The upstream of an entry; entries with the same server, models and headers are one. Reports why an entry has no upstream. */
  #upstream(
    entry: Fields,
    wanted: string,
    driver: UpstreamProtocol,
    base: string | undefined,
    models: RawConfig,
    priority: number
  ): DraftUpstream | undefined {
    const written = entry.text("base-url") ?? base
    const address = written === undefined ? undefined : addressOf(written)
    if (address === undefined) {
      this.#report.leftOut(
        entry.place,
        written === undefined ? "it has no base-url" : "its base-url is not an http or https URL"
      )
      return undefined
    }
    const prefix = entry.text("prefix")?.replaceAll(/^\/+|\/+$/g, "")
    const { forwarded, headers } = this.#headers(entry)
    const disabled = entry.flag("disabled")
    const upstream = this.draft.upstream(wanted, entry.place, driver, address, headers, {
      ...models,
      forwarded,
      disabled,
      prefix: prefix ?? null
    })
    const isNew = !this.#seen.has(upstream)
    this.#seen.add(upstream)
    upstream.order = isNew ? -priority : Math.min(upstream.order, -priority)
    if (!isNew) {
      entry.take("models")
      entry.take("excluded-models")
      return upstream
    }
    if (disabled) upstream.fields["enabled"] = false
    if (forwarded.length > 0) upstream.fields["forward_headers"] = forwarded
    if (this.#proxy !== undefined) upstream.fields["proxy"] = this.#proxy
    this.#models(entry, upstream, prefix)
    return upstream
  }

  readonly #seen = new Set<DraftUpstream>()

  /** The rank of an entry among the keys that serve a model: higher ones come first. */
  #priority(entry: Fields): number {
    return Math.max(-mostPriority, Math.min(mostPriority, entry.integer("priority") ?? 0))
  }

  #account(upstream: DraftUpstream, entry: Fields, priority: number): void {
    const key = entry.text("api-key")
    const proxy = proxyOf(entry, "proxy-url")
    if (key === undefined) {
      if (proxy === undefined) return
      if (upstream.fields["proxy"] === undefined || upstream.fields["proxy"] === this.#proxy) {
        upstream.fields["proxy"] = proxy
      }
      return
    }
    const token = literal(key)
    const weight = this.#weighs ? entry.amount("weight") : undefined
    if (upstream.accounts.has(token)) return
    upstream.accounts.set(token, {
      ...proxy === undefined ? {} : { proxy },
      ...priority === 0 ? {} : { priority },
      ...weight === undefined ? {} : { weight: Math.min(mostWeight, weight) }
    })
  }

  /** How an upstream chooses among its accounts: by their priorities, else as the strategy says. */
  #choose(upstream: DraftUpstream): void {
    const accounts = [...upstream.accounts]
    const weights = accounts.map(([, { weight }]) => typeof weight === "number" ? weight : 1)
    if (this.#weighs) upstream.weight = Math.max(1, weights.reduce((sum, weight) => sum + weight, 0))
    const isRanked = new Set(accounts.map(([, { priority }]) => priority)).size > 1
    const isWeighted = new Set(weights).size > 1
    if (isRanked || (this.draft.isOrdered && accounts.length > 1)) upstream.fields["choose"] = "fill_first"
    else if (isWeighted) upstream.fields["choose"] = "weighted"
    if (isRanked && !this.draft.isOrdered) {
      this.#report.changed(upstream.place, "its keys are used by priority, and those of one priority in their order")
    }
    const shares = sharesOf(weights)
    for (const [i, [token, { priority = 0, weight: _, ...fields }]] of accounts.entries()) {
      upstream.accounts.set(token, {
        ...fields,
        ...isRanked ? { priority } : isWeighted ? { weight: shares[i]! } : {}
      })
    }
  }

  #vendor(file: Fields, [name, wanted, driver, base]: (typeof vendors)[number]): void {
    for (const entry of file.objects(name)) {
      const priority = this.#priority(entry)
      const upstream = this.#upstream(entry, wanted, driver, base, entry.peek(["models", "excluded-models"]), priority)
      if (upstream === undefined) continue
      this.#account(upstream, entry, priority)
      entry.end(reasons)
    }
  }

  #compatible(file: Fields): void {
    for (const entry of file.objects("openai-compatibility")) {
      const wanted = entry.text("name") ?? "server"
      const priority = this.#priority(entry)
      const upstream = this.#upstream(entry, wanted, "openai", undefined, { place: entry.place }, priority)
      if (upstream === undefined) continue
      for (const key of entry.objects("api-key-entries")) {
        this.#account(upstream, key, this.#priority(key))
        key.end(reasons)
      }
      for (const key of entry.texts("api-keys")) upstream.accounts.set(literal(key), {})
      entry.end(reasons)
    }
  }

  #routing(file: Fields): void {
    const routing = file.object("routing")
    const strategy = routing?.text("strategy")
    this.draft.isOrdered = strategy === "fill-first"
    if (routing === undefined) return
    this.#weighs = strategy === "weighted-round-robin"
    if (strategy !== undefined && !["round-robin", "weighted-round-robin", "fill-first"].includes(strategy)) {
      this.#report.leftOut(routing.at("strategy"), "equal targets are asked evenly, by their free slots")
    }
    if (routing.flag("session-affinity")) {
      this.draft.fields["runtime"] = { sticky: true }
      // Agents of a session have accounts of their own by their names.
      if (routing.take("session-affinity-subagents") === true) {
        this.#report.leftOut(
          routing.at("session-affinity-subagents"),
          "each agent of a session prefers its own account"
        )
      }
    }
    if (routing.peek(["session-affinity-ttl"])["session-affinity-ttl"] === "1h") routing.take("session-affinity-ttl")
    routing.end(reasons)
  }

  /** The files of the port's certificate. */
  #tls(file: Fields): void {
    const tls = file.object("tls")
    const isOn = tls?.flag("enable")
    const [cert, key] = [tls?.text("cert"), tls?.text("key")]
    if (isOn && cert !== undefined && key !== undefined) this.draft.fields["server"] = { tls: { cert, key } }
    else if (isOn) this.#report.leftOut("tls", "it names no files of cert and key")
    tls?.end()
  }

  read(raw: RawConfig): void {
    const file = new Fields(raw, "", this.#report)
    const keys = new Set(file.texts("api-keys"))
    if (keys.size > 0) this.draft.fields["keys"] = [...keys]
    const host = file.take("host")
    if (typeof host === "string") {
      this.#report.changed(
        "host",
        host.trim() === "" ? "start with --host 0.0.0.0" : "start with --host and this address"
      )
    }
    const port = file.amount("port")
    if (port !== undefined) this.#report.changed("port", `start with --port ${port}`)
    this.#tls(file)
    this.#proxy = proxyOf(file, "proxy-url")
    this.#needsPrefix = file.flag("force-model-prefix")
    this.#routing(file)
    for (const vendor of vendors) this.#vendor(file, vendor)
    this.#compatible(file)
    for (const upstream of this.#seen) this.#choose(upstream)
    file.end(reasons)
  }
}

/** Reads a configuration of CLIProxyAPI. */
export const fromCliProxyApi = (file: RawConfig, report: Report): Draft => {
  const mapping = new CliProxyApi(report)
  mapping.read(file)
  return mapping.draft
}
