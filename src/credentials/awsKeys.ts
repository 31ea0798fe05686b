/** Where AWS's own programs find access keys: variables, the files of profiles, the server of a container, and that of a machine. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { homedir } from "node:os"
import path from "node:path"
import { readRegularFile } from "../config/regularFile.ts"
import type { SigningKeys } from "../domain/ownLogin.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { longestToken, sourceFailed, tokenIn } from "./CredentialSource.ts"
import { answerOf, isLoopback, nearTo } from "./tokenServers.ts"

export const kind = "aws"

/** Keys with the milliseconds of their life; `undefined` for keys without an end. */
export interface FoundKeys {
  readonly keys: SigningKeys
  readonly lives: number | undefined
}

/** Keys with where they come from. */
export interface KeysFound extends FoundKeys {
  readonly identity: string
  /** The region that stands beside them. */
  readonly region: string | undefined
}

/** A web identity that the environment names: the role that it stands for, and its token. */
export interface WebIdentity {
  readonly role: string
  readonly session: string | undefined
  readonly token: string
}

const failed = (step: string, advice?: string) => Effect.fail(sourceFailed(kind, step, advice))

const variable = (name: string): string | undefined => process.env[name]?.trim() || undefined

const read = (what: string, file: string): Effect.Effect<string, UpstreamFailure> =>
  readRegularFile(file, longestToken).pipe(
    Effect.mapBoth({
      onFailure: (error) => sourceFailed(kind, `${what} cannot be read: ${error.kind}`, error.message),
      onSuccess: (bytes) => bytes.toString("utf8")
    })
  )

/** The token in the file of a web identity, which is read at each issue. */
export const identityToken = (file: string): Effect.Effect<string, UpstreamFailure> =>
  Effect.flatMap(read("the web identity's token", file), (text) => {
    const token = tokenIn(text)
    return token === undefined ? failed("the file of the web identity has no token of one line") : Effect.succeed(token)
  })

/** Keys that are written in visible ASCII without blanks, as they are sent. */
const keysOf = (
  id: string | undefined,
  secret: string | undefined,
  session: string | undefined
): SigningKeys | undefined => {
  const [known, hidden, token] = [id, secret, session].map((text) => text && tokenIn(text))
  return known && hidden ? { id: known, secret: hidden, session: token || undefined } : undefined
}

/** The sections of a file of profiles, with the fields of each. */
const sectionsIn = (text: string): ReadonlyMap<string, ReadonlyMap<string, string>> => {
  const sections = new Map<string, Map<string, string>>()
  let fields = new Map<string, string>()
  for (const line of text.split(/\r?\n/)) {
    const [, name] = /^\s*\[\s*(?:profile\s+)?([^\]]+?)\s*\]/.exec(line) ?? []
    if (name !== undefined) sections.set(name, fields = sections.get(name) ?? new Map<string, string>())
    const [, field, value] = /^(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (field !== undefined) fields.set(field.toLowerCase(), value!)
  }
  return sections
}

const home = (name: string) => path.join(homedir(), ".aws", name)

/** The keys of a profile, by the file of keys and that of settings. */
export const keysOfProfile = Effect.fnUntraced(function*(
  profile: string
): Effect.fn.Return<KeysFound, UpstreamFailure> {
  const files = [
    variable("AWS_SHARED_CREDENTIALS_FILE") ?? home("credentials"),
    variable("AWS_CONFIG_FILE") ?? home("config")
  ]
  const texts = yield* Effect.forEach(files, (file) => Effect.option(read("the file", file)))
  const fields = texts.flatMap((text) => text._tag === "Some" ? sectionsIn(text.value).get(profile) ?? [] : [])
  const found = (name: string) => fields.map((section) => section.get(name)).find((value) => value !== undefined)
  const keys = keysOf(found("aws_access_key_id"), found("aws_secret_access_key"), found("aws_session_token"))
  return keys === undefined
    ? yield* failed("the profile has no keys", `${profile} in ${files.join(" or ")}`)
    : { keys, lives: undefined, region: found("region"), identity: `the profile ${profile}` }
})

const Document = Schema.fromJsonString(Schema.Struct({
  AccessKeyId: Schema.String,
  SecretAccessKey: Schema.String,
  Token: Schema.optionalKey(Schema.String),
  Expiration: Schema.optionalKey(Schema.String)
}))
const decodeDocument = Schema.decodeUnknownResult(Document)

/** The keys in the answer of a metadata server. */
const keysIn = Effect.fnUntraced(function*(
  server: string,
  { date, text }: { readonly date: number | undefined; readonly text: string },
  identity: string
): Effect.fn.Return<KeysFound, UpstreamFailure> {
  const decoded = decodeDocument(text)
  const document = Result.isSuccess(decoded) ? decoded.success : undefined
  const keys = document && keysOf(document.AccessKeyId, document.SecretAccessKey, document.Token)
  if (keys === undefined) return yield* failed(`${server} answered without keys`)
  const lives = Date.parse(document?.Expiration ?? "") - (date ?? (yield* Clock.currentTimeMillis))
  return { keys, lives: Number.isNaN(lives) ? undefined : Math.max(1_000, lives), region: undefined, identity }
})

const containerServer = "the container's server"

/** Hosts of containers' servers that are asked without TLS: those of ECS and EKS, and this computer. */
const isOfContainer = ({ hostname, protocol }: URL): boolean =>
  protocol === "https:" || isLoopback(hostname) ||
  ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"].includes(hostname)

const keysOfContainer = Effect.fnUntraced(function*(address: string): Effect.fn.Return<KeysFound, UpstreamFailure> {
  if (!URL.canParse(address) || !isOfContainer(new URL(address))) {
    return yield* failed("the address of the container's server is outside of the container")
  }
  const file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
  const token = file === undefined
    ? variable("AWS_CONTAINER_AUTHORIZATION_TOKEN")
    : (yield* read("the container's token", file)).trim()
  const answer = yield* answerOf(
    kind,
    containerServer,
    nearTo(address, token === undefined ? {} : { authorization: token })
  )
  return yield* keysIn(containerServer, answer, "the container's role")
})

const machineServer = "the metadata server"

/** Seconds of a token of the metadata server, which is asked for anew at each issue. */
const tokenLife = "60"

const keysOfMachine = Effect.gen(function*() {
  const address = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "http://169.254.169.254"
  const place = (rest: string) => `${address.replace(/\/+$/, "")}/latest/${rest}`
  const ask = (request: Parameters<typeof answerOf>[2]) => answerOf(kind, machineServer, request)
  const token = yield* ask(nearTo(place("api/token"), { "x-aws-ec2-metadata-token-ttl-seconds": tokenLife }, "PUT"))
  const headers = { "x-aws-ec2-metadata-token": token.text.trim() }
  const roles = "meta-data/iam/security-credentials/"
  const role = tokenIn((yield* ask(nearTo(place(roles), headers))).text)
  if (role === undefined) return yield* failed("the machine has no role")
  const answer = yield* ask(nearTo(place(roles + encodeURIComponent(role)), headers))
  return yield* keysIn(machineServer, answer, `the machine's role ${role}`)
})

/** The keys or the web identity that the first of these has: variables, a web identity, the profile, the container, the machine. */
export const keysOfSurroundings: Effect.Effect<KeysFound | WebIdentity, UpstreamFailure> = Effect.suspend(
  (): Effect.Effect<KeysFound | WebIdentity, UpstreamFailure> => {
    const keys = keysOf(
      variable("AWS_ACCESS_KEY_ID"),
      variable("AWS_SECRET_ACCESS_KEY"),
      variable("AWS_SESSION_TOKEN")
    )
    if (keys !== undefined) {
      return Effect.succeed({ keys, lives: undefined, region: undefined, identity: "the environment" })
    }
    const [file, role] = [variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN")]
    if (file !== undefined && role !== undefined) {
      return Effect.map(identityToken(file), (token) => ({ role, session: variable("AWS_ROLE_SESSION_NAME"), token }))
    }
    const profile = variable("AWS_PROFILE")
    const [relative, full] = [
      variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"),
      variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")
    ]
    const rest = relative !== undefined
      ? keysOfContainer(`http://169.254.170.2${relative}`)
      : full !== undefined
      ? keysOfContainer(full)
      : keysOfMachine
    return profile === undefined ? Effect.catch(keysOfProfile("default"), () => rest) : keysOfProfile(profile)
  }
)
