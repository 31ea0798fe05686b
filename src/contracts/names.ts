/**
 * The contracts by their names, with what the configuration, the router and the console know of each without its code: one row each.
 * `contracts.ts` has the code of each, `upstream/protocols.ts` its driver, `styles/styles.ts` its style.
 */
import type { TokenUnit } from "../domain/units.ts"

/** A row. */
export interface ProtocolFacts {
  /** The style by which clients speak it; `undefined` if none does. */
  readonly style: string | undefined
  /** The path below the gateway's address at which these clients ask a model for a reply. */
  readonly path: ((model: string, stream: boolean) => string) | undefined
  /** Nothing can be asked of it without an account. */
  readonly needsAccounts: boolean
  /** It serves the native models without a list of them. */
  readonly hasNatives: boolean
  /** Its requests always declare tools in fields of their own, so that models without them cannot be served. */
  readonly hasTools: boolean
  /**
   * The vendor whose servers speak it: their accounts are keys, and they have names of their own for their models. Those of one vendor have the
   * APIs of all its contracts, as of chat completions and Responses. `undefined` for what is no server.
   */
  readonly family: string | undefined
  /** The tokens that its servers charge apart. */
  readonly units: ReadonlyArray<TokenUnit>
  /** Its vendor by OpenTelemetry's conventions (`gen_ai.provider.name`); `undefined` for one that they do not have. */
  readonly provider: string | undefined
  /** The vendor's own servers, whose models are all that the vendor says of them; `undefined` for what is no server. */
  readonly home: RegExp | undefined
  /** What the addresses that operators paste end with beyond the base URL. */
  readonly endpoint: RegExp
}

/** Most vendors have one price for all tokens of a prompt. */
export const usualUnits: ReadonlyArray<TokenUnit> = ["input", "output"]

const openAiHome = /^https:\/\/(?:[a-z]+\.)?api\.openai\.com(?:[:/]|$)/

/** What is true of the servers of vendors. */
const server = { needsAccounts: false, hasNatives: false } as const

/** Adding a contract begins here; the compiler then reports the code that it lacks. */
export const protocols = {
  session: {
    style: undefined,
    path: undefined,
    needsAccounts: true,
    hasNatives: true,
    hasTools: false,
    family: undefined,
    units: usualUnits,
    provider: undefined,
    home: undefined,
    endpoint: /\/+$/
  },
  openai: {
    style: "chat",
    path: () => "/v1/chat/completions",
    ...server,
    hasTools: false,
    family: "openai",
    // Its servers are of many vendors.
    units: usualUnits,
    provider: "openai",
    home: openAiHome,
    endpoint: /(?:\/chat\/completions)?\/*$/
  },
  responses: {
    style: "responses",
    path: () => "/v1/responses",
    ...server,
    hasTools: false,
    family: "openai",
    units: ["input", "cached_input", "output"],
    provider: "openai",
    home: openAiHome,
    endpoint: /(?:\/(?:chat\/completions|responses))?\/*$/
  },
  messages: {
    style: "messages",
    path: () => "/v1/messages",
    ...server,
    hasTools: true,
    family: "messages",
    units: ["input", "cached_input", "cache_write", "cache_write_1h", "output"],
    provider: "anthropic",
    home: /^https:\/\/api\.anthropic\.com(?:[:/]|$)/,
    endpoint: /(?:\/v1)?(?:\/messages)?\/*$/
  },
  generate: {
    style: "generate",
    path: (model, stream) =>
      `/v1beta/models/${encodeURIComponent(model)}:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    ...server,
    hasTools: true,
    family: "generate",
    units: ["input", "cached_input", "output"],
    provider: "gcp.gemini",
    home: /^https:\/\/generativelanguage\.googleapis\.com(?:[:/]|$)/,
    endpoint: /(?:\/models(?:\/[^/]*:\w+)?)?\/*$/
  }
} as const satisfies { readonly [name: string]: ProtocolFacts }

/** The protocol of an upstream's replies, as captures and records name it. */
export type UpstreamProtocol = keyof typeof protocols

type Protocols = typeof protocols

/** The protocols of servers. */
export type ServerProtocol = {
  readonly [Name in UpstreamProtocol]: Protocols[Name]["family"] extends undefined ? never : Name
}[UpstreamProtocol]

/** The contracts by which elements and events are marked: those of vendors. */
export type FamilyName = ServerProtocol

/** The vendors whose contracts these are, of which chat completions and Responses are one. */
export type VendorName = Exclude<Protocols[UpstreamProtocol]["family"], undefined>

/** The styles by which clients speak a contract. */
export type SpokenStyle = Exclude<Protocols[UpstreamProtocol]["style"], undefined>

/** What operators say of a server by which its vendor has an address for it, by the names of the settings. */
export type PlaceField = "region" | "project" | "resource"

/** Where a vendor's server is; empty for what the vendor does not need. */
export type VendorPlace = Readonly<Record<PlaceField, string>>

/** What is known of a vendor's server by its place. */
export interface VendorAddress {
  /** Scheme and host, in place of which an operator may say another one. */
  readonly origin: string
  /** What is between that and the paths of the contract. */
  readonly base: string
  /** The service and region of signatures; `undefined` where a header has the credential. */
  readonly signing: { readonly service: string; readonly region: string } | undefined
  /** The header that has a key as it stands; `undefined` for the contract's. */
  readonly keyHeader: string | undefined
}

interface Cloud {
  /** By OpenTelemetry's conventions, as of contracts. */
  readonly provider: string
  readonly needs: ReadonlyArray<PlaceField>
  /** Whether a model is asked anywhere in the world, for the list price of its vendor: within a region it costs more. */
  readonly isGlobal: (place: VendorPlace, model: string) => boolean
  readonly servers: { readonly [Driver in ServerProtocol]?: (place: VendorPlace) => VendorAddress }
}

const mantle = (base: string) => ({ region }: VendorPlace): VendorAddress => ({
  origin: `https://bedrock-mantle.${region}.api.aws`,
  base: `/${base}`,
  signing: { service: "bedrock-mantle", region },
  keyHeader: undefined
})

const runtime = (base: string) => ({ region }: VendorPlace): VendorAddress => ({
  origin: `https://bedrock-runtime.${region}.amazonaws.com`,
  base,
  signing: { service: "bedrock", region },
  keyHeader: undefined
})

/** `global` and the regions of several countries have hosts of their own. */
const vertex = (publisher: string) => ({ project, region }: VendorPlace): VendorAddress => ({
  origin: region === "global"
    ? "https://aiplatform.googleapis.com"
    : region === "us" || region === "eu"
    ? `https://aiplatform.${region}.rep.googleapis.com`
    : `https://${region}-aiplatform.googleapis.com`,
  base: `/v1/projects/${encodeURIComponent(project)}/locations/${region}/publishers/${publisher}`,
  signing: undefined,
  keyHeader: undefined
})

const azure = ({ resource }: VendorPlace): VendorAddress => ({
  origin: `https://${resource}.openai.azure.com`,
  base: "/openai/v1",
  signing: undefined,
  keyHeader: "api-key"
})

/** Models of Bedrock say themselves where they are asked: without a prefix in the region of the server. */
const isGlobalProfile = (_: VendorPlace, model: string): boolean => /(?:^|\/)global\./.test(model)

/**
 * Vendors whose servers are found by what operators say of them: what that is, and the address of the server of each driver. `vendors.ts` has
 * what these servers have otherwise than the contracts.
 */
export const clouds = {
  bedrock: {
    provider: "aws.bedrock",
    needs: ["region"],
    isGlobal: isGlobalProfile,
    servers: { openai: mantle("v1"), responses: mantle("v1"), messages: mantle("anthropic") }
  },
  "bedrock-runtime": {
    provider: "aws.bedrock",
    needs: ["region"],
    isGlobal: isGlobalProfile,
    servers: { openai: runtime("/openai/v1"), responses: runtime("/openai/v1"), messages: runtime("") }
  },
  vertex: {
    provider: "gcp.vertex_ai",
    needs: ["region", "project"],
    isGlobal: ({ region }: VendorPlace) => region === "global",
    servers: { generate: vertex("google"), messages: vertex("anthropic") }
  },
  azure: {
    provider: "azure.ai.openai",
    needs: ["resource"],
    // The type of a deployment says where it is asked, and only Azure knows it.
    isGlobal: () => false,
    servers: { openai: azure, responses: azure }
  }
} as const satisfies { readonly [name: string]: Cloud }

/** A vendor by its name in the configuration. */
export type CloudName = keyof typeof clouds

/** The names of these vendors. */
export const cloudNames = Object.keys(clouds) as ReadonlyArray<CloudName>

/** The drivers that a vendor has servers of. */
export const driversOfCloud = (name: CloudName): ReadonlyArray<string> => Object.keys(clouds[name].servers)

/** Whether a model of a vendor's server is asked anywhere in the world, and not within a region. */
export const isGlobal = (name: CloudName, place: VendorPlace, model: string): boolean =>
  clouds[name].isGlobal(place, model)

/** The address of a vendor's server; `undefined` for a driver that it has no server of. */
export const addressOfCloud = (name: CloudName, driver: string, place: VendorPlace): VendorAddress | undefined => {
  const servers: { readonly [driver: string]: (place: VendorPlace) => VendorAddress } = clouds[name].servers
  return Object.hasOwn(servers, driver) ? servers[driver]?.(place) : undefined
}

/** The contract that serves completions of a server with several; `auto` leaves it to each request. */
export type ServingContract = "openai" | "responses" | "auto"

/** The same by the words of the setting `api`. */
export const contractOfApi = { chat: "openai", responses: "responses", auto: "auto" } as const

/** The contract in whose words all contracts read what servers say beyond text and calls: refusals, pictures, citations. */
export const commonWords: FamilyName = "openai"
