/**
 * The configuration of LiteLLM's proxy as one of this gateway: https://docs.litellm.ai/docs/proxy/config_settings,
 * https://docs.litellm.ai/docs/routing.
 */
import type * as Schema from "effect/Schema"
import { isJsonObject, type RawConfig } from "../../../config/json.ts"
import { isOwnVariable } from "../../../config/referenceNames.ts"
import { Draft, type DraftUpstream } from "./Draft.ts"
import { cloudPlaces, credentialOf, type Place } from "./litellmClouds.ts"
import { providers, signed, wellKnown } from "./litellmProviders.ts"
import { leftOutBecause } from "./litellmSettings.ts"
import { Fields, type Report } from "./Report.ts"
import { addressOf, headersOf, literal, noWildcards } from "./values.ts"

/** A date, or a date of a preview: an API by the address of a deployment. */
const datedApi = /^\d{4}-\d{2}-\d{2}(?:-preview)?$/

const reference = /^os\.environ\/([A-Za-z_]\w*)$/

/** Fields of `model_info` that `readModelFacts` reads. */
const factFields = new Set(
  ("max_input_tokens max_output_tokens supported_modalities supported_output_modalities supports_vision supports_pdf_input " +
    "supports_audio_input supports_video_input supports_function_calling supports_reasoning reasoning_effort_levels " +
    "supports_none_reasoning_effort supports_minimal_reasoning_effort supports_xhigh_reasoning_effort " +
    "supports_max_reasoning_effort prompt_cache_min_tokens").split(" ")
)

/** Fields that `readPrices` reads. */
const isCost = (name: string): boolean => name.includes("cost")

/** The strategy without any other one, by weights where there are some. */
const shuffle = "simple-shuffle"

const evenStrategies = new Set([shuffle, "least-busy"])

/** Greater weights of an entry count as this one. */
const mostWeight = 1e9

/** Looks a variable up in the environment of the import. */
export type Variables = (name: string) => string | undefined

const isKnown = (provider: string): boolean => providers.has(provider) || cloudPlaces.has(provider)

/** What an entry says about its server. */
interface Server {
  readonly provider: string
  readonly model: string
}

class LiteLlm {
  readonly draft: Draft
  readonly #report: Report
  readonly #variables: Variables
  readonly #credentials = new Map<string, RawConfig>()
  /** The limits of concurrent requests of each upstream's entries; an entry without one counts as infinite. */
  readonly #inflight = new Map<DraftUpstream, Map<string, number>>()
  readonly #models = new Map<DraftUpstream, Map<string, Set<string>>>()
  /** Where an entry of each upstream limits its concurrent requests first. */
  readonly #limited = new Map<DraftUpstream, string>()
  #environment: RawConfig = {}
  #timeout: readonly [seconds: number, place: string] | undefined
  #mostInflight: number | undefined
  #embeds = false

  constructor(report: Report, variables: Variables) {
    this.draft = new Draft(report)
    this.#report = report
    this.#variables = variables
  }

  /** A text that is no secret. A reference is replaced by the variable's value, because addresses and names have no references here. */
  #plain(fields: Fields, name: string): string | undefined {
    const text = fields.text(name)
    const variable = text === undefined ? undefined : reference.exec(text)?.[1]
    if (variable === undefined) return text
    const own = this.#environment[variable]
    const value = typeof own === "string" ? own : this.#variables(variable)
    if (value === undefined) {
      this.#report.leftOut(fields.at(name), `the variable ${variable} is not set for the import, which takes its value`)
      return undefined
    }
    this.#report.changed(fields.at(name), `is the value that the variable ${variable} has now`)
    return value.trim()
  }

  /** A secret, in which references stay references. */
  #secret(text: string, place: string): string | undefined {
    if (!text.startsWith("os.environ/")) return literal(text)
    const variable = reference.exec(text)?.[1]
    if (variable === undefined) this.#report.leftOut(place, "it refers to no variable")
    else if (isOwnVariable(variable)) {
      this.#report.leftOut(
        place,
        `no setting may refer to ${variable}, which is the gateway's own: rename the variable`
      )
    } else return this.#reference(variable, place)
    return undefined
  }

  #reference(variable: string, place: string): string {
    this.#report.changed(place, `is \${${variable}}: set this variable in the environment of the gateway`)
    return `\${${variable}}`
  }

  /** The provider and the model that an entry names. */
  #server(params: Fields): Server | undefined {
    const written = this.#plain(params, "model")
    const custom = params.text("custom_llm_provider")
    const place = params.at("model")
    if (written === undefined) {
      this.#report.leftOut(params.place, "it names no model")
      return undefined
    }
    const slash = written.indexOf("/")
    const prefix = slash === -1 ? undefined : written.slice(0, slash)
    const named = prefix !== undefined && (isKnown(prefix) || signed.has(prefix)) ? prefix : undefined
    const provider = named ?? custom ?? prefix ?? wellKnown.find(([names]) => names.test(written))?.[1]
    const model = named === undefined ? written : written.slice(slash + 1)
    if (model.includes("*")) this.#report.leftOut(params.place, noWildcards)
    else if (provider === undefined) this.#report.leftOut(place, "it names no provider")
    else if (signed.has(provider)) {
      this.#report.leftOut(params.place, `requests to ${provider} are signed or need a login of the cloud`)
    } else if (isKnown(provider)) return { provider, model }
    else this.#report.leftOut(params.place, "its provider has no protocol of this gateway, or is not known")
    return undefined
  }

  /** The address of a cloud's server; reports why it has none. */
  #cloud({ model, provider }: Server, params: Fields): Place | undefined {
    const found = cloudPlaces.get(provider)!(model, (name) => this.#plain(params, name))
    if (typeof found === "string") {
      this.#report.leftOut(params.place, found)
      return undefined
    }
    const written = this.#plain(params, "aws_bedrock_runtime_endpoint") ?? this.#plain(params, "api_base")
    return { ...found, address: written === undefined ? "" : addressOf(written) ?? "", isOwn: true }
  }

  /** The address of an entry's server; reports why it has no address. */
  #address(server: Server, params: Fields): Place | undefined {
    const { model, provider } = server
    if (cloudPlaces.has(provider)) return this.#cloud(server, params)
    const hasBase = params.text("base_url")
    const written = this.#plain(params, "api_base") ?? hasBase
    const version = this.#plain(params, "api_version")
    const { base, driver, path = "" } = providers.get(provider)!
    const address = written ?? base
    if (address === undefined) {
      this.#report.leftOut(params.place, `${provider} has no address of its own, and the entry no api_base`)
      return undefined
    }
    const plain = addressOf(address)
    if (plain === undefined) {
      this.#report.leftOut(params.at("api_base"), "it is not an http or https URL, so the model is left out")
      return undefined
    }
    if (provider === "azure") {
      const resource = plain.replace(/\/openai(?:\/v1)?$/, "")
      const isDated = version !== undefined && datedApi.test(version)
      const query = `?api-version=${encodeURIComponent(version ?? "")}`
      if (!isDated) this.#report.changed(params.place, "requests go to /openai/v1 of the resource")
      return {
        address: isDated
          ? `${resource}/openai/deployments/${encodeURIComponent(model)}${query}`
          : `${resource}/openai/v1`,
        driver,
        fields: {},
        isOwn: true,
        model
      }
    }
    if (version !== undefined) this.#report.leftOut(params.at("api_version"), "the address alone says the version")
    return {
      address: plain.endsWith(path) ? plain : plain + path,
      driver,
      fields: {},
      isOwn: written !== undefined,
      model
    }
  }

  /** The values of the entry's named credential, beneath its own. */
  #params(entry: Fields): Fields | undefined {
    const params = entry.take("litellm_params")
    if (!isJsonObject(params)) {
      this.#report.leftOut(entry.at("litellm_params"), "it is no object, so the model is left out")
      return undefined
    }
    const { litellm_credential_name: name, ...others } = params
    const credential = typeof name === "string" ? this.#credentials.get(name) : undefined
    if (name !== undefined && credential === undefined) {
      this.#report.leftOut(entry.at("litellm_params.litellm_credential_name"), "credential_list has no such credential")
    }
    return new Fields({ ...credential, ...others }, entry.at("litellm_params"), this.#report)
  }

  #account(upstream: DraftUpstream, server: Server, params: Fields, isOwn: boolean, name: string): string | undefined {
    const key = params.text("api_key")
    const variable = providers.get(server.provider)?.variable
    const credential = key === undefined
      ? credentialOf(server.provider, params, (name) => {
        const text = params.text(name)
        return text === undefined ? undefined : this.#secret(text, params.at(name))
      })
      : undefined
    const token = credential !== undefined
      ? JSON.stringify(credential)
      : key !== undefined
      ? this.#secret(key, params.at("api_key"))
      // The provider's key belongs to the provider alone, and not to a server of another address.
      : variable !== undefined && !isOwn
      ? this.#reference(variable, params.at("api_key"))
      : undefined
    if (token === undefined) return undefined
    if (!upstream.accounts.has(token)) upstream.accounts.set(token, credential === undefined ? {} : { credential })
    const models = this.#models.get(upstream) ?? new Map<string, Set<string>>()
    this.#models.set(upstream, models)
    models.set(token, (models.get(token) ?? new Set()).add(name))
    return token
  }

  /** The seconds that a server may be silent. LiteLLM limits the whole call. */
  #limitTime(upstream: DraftUpstream, params: Fields): void {
    const own = params.amount("timeout")
    const first = params.amount("stream_timeout")
    const seconds = own ?? first ?? this.#timeout?.[0]
    const place = own !== undefined
      ? params.at("timeout")
      : first !== undefined
      ? params.at("stream_timeout")
      : this.#timeout?.[1]
    if (own !== undefined && first !== undefined) {
      this.#report.leftOut(params.at("stream_timeout"), "timeout limits streams too")
    }
    if (seconds === undefined || place === undefined) return
    const before = upstream.fields["timeouts"]
    const longest = Math.min(
      86_400,
      Math.max(0.01, seconds, isJsonObject(before) ? Number(before["first_byte"]) : 0)
    )
    upstream.fields["timeouts"] = { first_byte: longest, silence: longest }
    this.#report.changed(
      place,
      "limits the time to the first byte and each silence, for all models of the upstream; all attempts of a request have " +
        "upstream.timeouts.attempts together, by default 120 seconds"
    )
  }

  #entry(entry: Fields): void {
    const name = entry.text("model_name")
    const params = this.#params(entry)
    if (params === undefined) return
    if (name === undefined || name.includes("*")) {
      this.#report.leftOut(entry.place, name === undefined ? "it has no model_name" : noWildcards)
      return
    }
    const server = this.#server(params)
    const found = server && this.#address(server, params)
    if (server === undefined || found === undefined) return
    const { provider } = server
    const secret = (text: string, place: string) => this.#secret(text, place)
    const organization = params.text("organization")
    const organizationHeader = organization === undefined ? undefined : secret(organization, params.at("organization"))
    const headers = {
      ...(organizationHeader === undefined ? {} : { "OpenAI-Organization": organizationHeader }),
      ...headersOf(params, "headers", secret),
      ...headersOf(params, "extra_headers", secret)
    }
    const { driver, model } = found
    const upstream = this.draft.upstream(provider, params.place, driver, found.address, headers, found.fields)
    Object.assign(upstream.fields, found.fields)
    if (provider === "azure") upstream.fields["credential_header"] = "api-key"
    const token = this.#account(upstream, server, params, found.isOwn, name)
    this.#limitTime(upstream, params)
    const ownInflight = params.amount("max_parallel_requests")
    if (ownInflight !== undefined && !this.#limited.has(upstream)) {
      this.#limited.set(upstream, params.at("max_parallel_requests"))
    }
    const inflight = ownInflight ?? this.#mostInflight
    const limits = this.#inflight.get(upstream) ?? new Map<string, number>()
    this.#inflight.set(upstream, limits)
    limits.set(JSON.stringify([name, model, token]), inflight ?? Number.POSITIVE_INFINITY)
    const info = entry.object("model_info")
    const mode = info?.text("mode")
    if (mode === "embedding") this.#embeds = true
    const isResponses = driver === "openai" && (model.startsWith("responses/") || mode === "responses")
    const costs = { ...params.pick(isCost), ...info?.pick(isCost) }
    const limit = driver === "messages" ? params.amount("max_tokens") : undefined
    const weight = params.amount("weight")
    this.draft.deploy({
      upstream,
      name,
      model: model.replace(/^responses\//, ""),
      fields: {
        ...(isResponses ? { api: "responses" } : {}),
        ...(limit === undefined ? {} : { max_tokens: Math.ceil(limit) })
      },
      order: params.amount("order") ?? Number.POSITIVE_INFINITY,
      weight: weight === undefined ? undefined : Math.min(mostWeight, weight),
      info: info?.pick((name) => factFields.has(name)),
      costs: Object.keys(costs).length === 0 ? undefined : costs
    })
    info?.take("id")
    info?.end()
    params.end(
      leftOutBecause,
      "it is a parameter of the request or of the provider, and requests keep those of their clients"
    )
    entry.end(leftOutBecause)
  }

  /** The names of a setting that says where failed requests go, as pairs of a name and those after it. */
  #fallbacks(settings: Fields, name: string, alsoOn?: "context_length" | "content_filter"): void {
    const given = settings.take(name)
    const maps = Array.isArray(given) ? given : given === undefined ? [] : [given]
    for (const [index, map] of maps.entries()) {
      const place = Array.isArray(given) ? `${settings.at(name)}[${index}]` : settings.at(name)
      if (!isJsonObject(map)) {
        this.#report.leftOut(place, "it is no object")
        continue
      }
      for (const [from, targets] of Object.entries(map)) {
        this.#goOn(from === "*" ? undefined : from, targets, `${place}.${from}`, alsoOn)
      }
    }
    if (maps.length > 0 && alsoOn !== undefined) {
      this.#report.changed(settings.at(name), "its models are asked after other failures too")
    }
  }

  #goOn(
    name: string | undefined,
    targets: Schema.Json,
    place: string,
    alsoOn?: "context_length" | "content_filter"
  ): void {
    if (name !== undefined && !this.draft.has(name)) {
      this.#report.leftOut(place, "it names no model of the result")
      return
    }
    for (const [index, target] of (Array.isArray(targets) ? targets : [targets]).entries()) {
      const at = `${place}[${index}]`
      if (typeof target !== "string") this.#report.leftOut(at, "it is no name")
      else if (!this.draft.has(target)) this.#report.leftOut(at, "it names no model of the result")
      else this.draft.goOn(name, target, alsoOn)
    }
  }

  #aliases(settings: Fields, name: string): void {
    for (const [alias, target] of settings.object(name)?.rest() ?? []) {
      const place = `${settings.at(name)}.${alias}`
      const model = isJsonObject(target) ? target["model"] : target
      if (typeof model === "string") this.draft.alias(alias, model, place)
      else this.#report.leftOut(place, "it names no model")
    }
  }

  /** Settings that concern entries, before these are read. */
  #before(settings: ReadonlyArray<Fields>): void {
    for (const section of settings) {
      for (const name of ["request_timeout", "timeout"]) {
        const seconds = section.amount(name)
        if (seconds !== undefined) this.#timeout = [seconds, section.at(name)]
      }
      for (const name of ["max_parallel_requests", "default_max_parallel_requests"]) {
        this.#mostInflight = section.amount(name) ?? this.#mostInflight
      }
      const all = section.amount("global_max_parallel_requests")
      if (all !== undefined) {
        this.draft.fields["runtime"] = { global_max_inflight: Math.min(200_000, Math.ceil(all)) }
      }
    }
  }

  /** Settings that name models, after these are read. */
  #after(settings: ReadonlyArray<Fields>): void {
    for (const section of settings) {
      this.#fallbacks(section, "fallbacks")
      this.#fallbacks(section, "context_window_fallbacks", "context_length")
      this.#fallbacks(section, "content_policy_fallbacks", "content_filter")
      const others = section.take("default_fallbacks")
      if (others !== undefined) this.#goOn(undefined, others, section.at("default_fallbacks"))
      this.#aliases(section, "model_group_alias")
      this.#aliases(section, "model_alias_map")
      const strategy = section.text("routing_strategy")
      if (strategy !== undefined) this.draft.isWeighted = strategy === shuffle
      if (strategy !== undefined && !evenStrategies.has(strategy)) {
        this.#report.leftOut(section.at("routing_strategy"), "equal targets are asked evenly, by their free slots")
      }
      section.end(leftOutBecause)
    }
  }

  #limits(): void {
    for (const [upstream, limits] of this.#inflight) {
      const sum = [...limits.values()].reduce((sum, limit) => sum + Math.ceil(limit), 0)
      if (Number.isFinite(sum)) upstream.fields["max_inflight"] = Math.min(200_000, sum)
      else if ([...limits.values()].some(Number.isFinite)) {
        this.#report.leftOut(
          this.#limited.get(upstream) ?? `${upstream.place}.max_parallel_requests`,
          "other models of the same server have no limit, and limits belong to upstreams here"
        )
      }
    }
    for (const [upstream, models] of this.#models) {
      const [first, ...others] = [...models.values()]
      if (others.some((names) => names.size !== first!.size || [...names].some((name) => !first!.has(name)))) {
        this.#report.changed(upstream.place, "all keys of this server serve all of its models")
      }
    }
  }

  read(file: RawConfig): void {
    const fields = new Fields(file, "", this.#report)
    const environment = fields.take("environment_variables")
    if (isJsonObject(environment)) {
      this.#environment = environment
      for (const name of Object.keys(environment)) {
        this.#report.leftOut(`environment_variables.${name}`, leftOutBecause["environment_variables"]!)
      }
    }
    for (const credential of fields.objects("credential_list")) {
      const name = credential.text("credential_name")
      const values = credential.take("credential_values")
      if (name !== undefined && isJsonObject(values)) this.#credentials.set(name, values)
      credential.take("credential_info")
      credential.end()
    }
    const settings = ["general_settings", "litellm_settings", "router_settings"].flatMap((name) =>
      fields.object(name) ?? []
    )
    this.#before(settings)
    for (const entry of fields.objects("model_list")) this.#entry(entry)
    this.#after(settings)
    this.#limits()
    if (this.#embeds) this.draft.fields["embeddings"] = { provider: "upstream" }
    fields.end(leftOutBecause)
  }
}

/** Reads a configuration of LiteLLM's proxy. `variables` come from the import. */
export const fromLiteLlm = (file: RawConfig, report: Report, variables: Variables): Draft => {
  const mapping = new LiteLlm(report, variables)
  mapping.read(file)
  return mapping.draft
}
