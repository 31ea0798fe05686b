/**
 * Names of fields in requests by which a server chooses the model or the tier. Servers differ in how they read names, so a name stands for
 * every spelling that one of them accepts.
 */
import { type GatewayError, invalidRequest } from "./GatewayError.ts"
import { isRecord } from "./json.ts"
import { type Cooperative, Slice } from "./stream/cooperative.ts"

/** Some JSON decoders match names in any case, by Unicode's folding. */
const choosing = /^(?:models|route|provider|fallbacks|service_?tier)$/iu

/** Fields of the content-generation settings that choose another model than the path. */
const settings = /^generation_?config$/i
const choosingSettings = /^(?:routing_?config|model_?selection_?config)$/iu

const model = /^model$/i

/** A field of a form with what some servers read as an index: `models[]`. */
const baseName = (name: string): string => name.replace(/\[.*$/s, "")

/** True for a field of a form by which servers choose another model, or a tier. */
export const choosesInForm = (name: string): boolean => choosing.test(baseName(name))

/** True for a field of a form that some servers read as `model`. */
export const isLikeModel = (name: string): boolean => name !== "model" && model.test(baseName(name))

/** What a name that is nearly `model` is refused with. */
export const likeModel = (name: string): string => `${name}: some servers read it as "model"; leave it out`

/** The fields of a body that choose. */
export interface ChoosingFields {
  /** The paths of fields by which servers choose another model, or a tier. At most those of the body. */
  readonly paths: ReadonlyArray<string>
  /** The error for a name that equals `model` but for its case. */
  readonly refused: GatewayError | undefined
}

const none: ChoosingFields = { paths: [], refused: undefined }

/** Finds the choosing fields of a parsed body. A field that is `null` chooses nothing. */
export function* choosingFields(body: unknown): Cooperative<ChoosingFields> {
  if (!isRecord(body)) return none
  const slice = new Slice()
  const paths: Array<string> = []
  for (const name of Object.keys(body)) {
    if (slice.add(1)) yield slice.end()
    const value = body[name]
    if (name !== "model" && model.test(name)) return { paths, refused: invalidRequest(likeModel(name), name) }
    if (value === null) continue
    if (choosing.test(name)) paths.push(name)
    else if (settings.test(name) && isRecord(value)) {
      for (const inner of Object.keys(value)) {
        if (slice.add(1)) yield slice.end()
        if (choosingSettings.test(inner) && value[inner] !== null) paths.push(`${name}.${inner}`)
      }
    }
  }
  return paths.length === 0 ? none : { paths, refused: undefined }
}
