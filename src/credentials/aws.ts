/** The source `aws`: access keys of AWS, by which each request is signed, and those of a role that they assume. */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { credentialKinds } from "../config/document.ts"
import { regionForm } from "../config/schema.ts"
import { type SigningKeys, textOfKeys } from "../domain/ownLogin.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { type FoundKeys, identityToken, type KeysFound, keysOfProfile, keysOfSurroundings, kind } from "./awsKeys.ts"
import { sourceFailed, type TokenMaker } from "./CredentialSource.ts"
import { signatureOf } from "./sigV4.ts"
import { accepted, formTo, isSkewed, replyOf, type TokenRequest } from "./tokenServers.ts"

type Settings = typeof credentialKinds["aws"]["Type"]

const server = "the token service"

/** Names the session of a role. An account has one session for all keys of the gateway: its credential is issued once for all nodes. */
const defaultSession = "model-gateway"

/** Seconds that the session of a role lasts: what each role allows. */
const sessionLife = "3600"

/** What the keys of an account are. */
interface Found extends FoundKeys {
  readonly identity: string
}

const failed = (step: string) => Effect.fail(sourceFailed(kind, step))

/** The value of an element of the service's XML. The values that are read have no escapes. */
const element = (text: string, name: string): string | undefined =>
  new RegExp(`<${name}>\\s*([!-;=-~]+)\\s*</${name}>`).exec(text)?.[1]

/** Sends a request to the token service; again by the service's clock where that is another one. */
const ask = Effect.fnUntraced(function*(
  request: TokenRequest,
  keys: SigningKeys | undefined,
  region: string
) {
  const now = yield* Clock.currentTimeMillis
  const send = (at: number) =>
    keys === undefined
      ? replyOf(kind, server, request)
      : Effect.flatMap(
        signatureOf(request, keys, { service: "sts", region }, at),
        (signature) => replyOf(kind, server, { ...request, headers: { ...request.headers, ...signature } })
      )
  const first = yield* send(now)
  const isRepeated = keys !== undefined && first.status === 403 && isSkewed(first.date, now)
  return yield* accepted(kind, server, isRepeated ? yield* send(first.date) : first)
})

/** Assumes the role of the settings: by keys, or by the token of a web identity. */
const assumed = Effect.fnUntraced(function*(
  { external_id, region: written, session = defaultSession, sts }: Settings,
  role: string,
  proof: KeysFound | { readonly token: string }
): Effect.fn.Return<Found, UpstreamFailure> {
  const region = [
    written,
    process.env["AWS_REGION"],
    process.env["AWS_DEFAULT_REGION"],
    "keys" in proof ? proof.region : undefined
  ].find((each) => each !== undefined && each !== "") ?? "us-east-1"
  if (!regionForm.test(region)) return yield* failed("the region is no name of a region")
  const fields = {
    Version: "2011-06-15",
    RoleArn: role,
    RoleSessionName: session,
    DurationSeconds: sessionLife,
    ...("keys" in proof
      ? { Action: "AssumeRole", ...(external_id === undefined ? {} : { ExternalId: external_id }) }
      : { Action: "AssumeRoleWithWebIdentity", WebIdentityToken: proof.token })
  }
  const request = formTo(`${(sts ?? `https://sts.${region}.amazonaws.com`).replace(/\/+$/, "")}/`, fields)
  const { date, text } = yield* ask(request, "keys" in proof ? proof.keys : undefined, region)
  const [id, secret, token] = ["AccessKeyId", "SecretAccessKey", "SessionToken"].map((name) => element(text, name))
  const lives = Date.parse(element(text, "Expiration") ?? "") - (date ?? (yield* Clock.currentTimeMillis))
  if (id === undefined || secret === undefined || token === undefined || Number.isNaN(lives)) {
    return yield* failed(`${server} answered without keys`)
  }
  return { keys: { id, secret, session: token }, lives: Math.max(1_000, lives), identity: element(text, "Arn") ?? role }
})

/** The keys that the settings name, or those of the surroundings; the token of a web identity stands for keys of a role. */
const found = (settings: Settings): Effect.Effect<Found, UpstreamFailure> => {
  const { key, profile, role, secret, web_identity_file } = settings
  const assuming = (proof: Effect.Effect<KeysFound, UpstreamFailure>) =>
    Effect.flatMap(
      proof,
      (keys): Effect.Effect<Found, UpstreamFailure> =>
        role === undefined ? Effect.succeed(keys) : assumed(settings, role, keys)
    )
  if (key !== undefined && secret !== undefined) {
    const keys = { id: key, secret, session: undefined }
    return assuming(Effect.succeed({ keys, lives: undefined, region: undefined, identity: "an access key" }))
  }
  if (web_identity_file !== undefined && role !== undefined) {
    return Effect.flatMap(identityToken(web_identity_file), (token) => assumed(settings, role, { token }))
  }
  if (profile !== undefined) return assuming(keysOfProfile(profile))
  return Effect.flatMap(keysOfSurroundings, (surroundings) => {
    if ("keys" in surroundings) return assuming(Effect.succeed(surroundings))
    const { role: own, session = defaultSession, token } = surroundings
    const keys = assumed({ ...settings, session }, own, { token })
    // The role of the web identity assumes the one of the settings.
    return assuming(Effect.map(keys, (each) => ({ ...each, region: undefined })))
  })
}

/** Issues access keys of AWS. Files and servers are asked at each issue. */
export const awsTokens = (settings: Settings): TokenMaker => {
  let identity = settings.role ?? settings.profile ?? (settings.key === undefined ? "the environment" : "an access key")
  return {
    kind,
    identity: () => identity,
    // Without a role the keys are those that a node has.
    isOfNode: settings.role === undefined,
    sends: "signature",
    issue: Effect.map(Effect.suspend(() => found(settings)), (each) => {
      identity = each.identity
      return { token: textOfKeys(each.keys), lives: each.lives, renewAfter: undefined }
    })
  }
}
