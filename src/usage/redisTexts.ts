/**
 * Buckets of usage as texts of the store that nodes share.
 *
 * A bucket's name leaves the app `none` out, and then its upstream and target where they follow from its model: most names are short.
 *
 * A bucket's value is its sums, without trailing zeros of costs and later sums, then its errors as `<code>=<count>`, and its times, whose
 * places stand for codes: no code begins with a digit.
 */
import { none } from "../domain/usageNames.ts"
import type { Bucket, SessionUsage } from "./Batch.ts"
import { addTimesText } from "./Times.ts"
import {
  addErrors,
  cacheNames,
  type DimensionName,
  dimensionsBy,
  laterNames,
  measureNames,
  onlyTarget,
  sumNames,
  type Sums,
  zero
} from "./UsageEntry.ts"

/** Between the parts of a name. */
export const separator = "\u0000"

/** Reads a bucket of the store. */
export const readBucket = (hour: number, names: string, value: string): Bucket => {
  const [key = "", model = "", account = "", style = "", upstream, target = "", app = none] = names.split(separator)
  return {
    hour,
    key,
    model,
    account,
    style,
    ...(upstream === undefined ? onlyTarget(model) : { upstream, target }),
    app,
    session: "",
    agent: "",
    parent: "",
    sums: readSums(value)
  }
}

/** Reads a bucket of a session in the store: its name is its hour, app, agent and parent. */
export const readSessionBucket = (key: string, session: string, names: string, value: string): Bucket => {
  const [hour, app = none, agent = none, parent = none] = names.split(separator)
  return {
    hour: Number(hour),
    key,
    model: "",
    account: "",
    style: "",
    upstream: "",
    target: "",
    app,
    session,
    agent,
    parent,
    sums: readSums(value)
  }
}

const isPlace = (word: string): boolean => word >= "0" && word < ":"

const readSums = (value: string): Sums => {
  const sums = zero()
  const words = value.split(" ")
  words.forEach((word, i) => {
    const equals = word.lastIndexOf("=")
    if (equals !== -1 && isPlace(word)) addTimesText(sums.times ??= new Map(), word)
    else if (equals !== -1) addErrors(sums, word.slice(0, equals), Number(word.slice(equals + 1)))
    else if (i < sumNames.length) sums.values[i] = Number(word)
  })
  return sums
}

const nameOf = ({ account, app, key, model, style, target, upstream }: Bucket): string => {
  const only = onlyTarget(model)
  const own = [key, model, account, style]
  if (app !== none) return [...own, upstream, target, app].join(separator)
  return (target === only.target && upstream === only.upstream ? own : [...own, upstream, target]).join(separator)
}

/** The sums of a bucket end before the costs, the later sums or those of caches, if all that follow are 0. */
const written = (values: ReadonlyArray<number>): ReadonlyArray<number> => {
  const withLater = sumNames.length - cacheNames.length
  const end = [measureNames.length, withLater - laterNames.length, withLater]
    .find((end) => values.slice(end).every((value) => value === 0))
  return end === undefined ? values : values.slice(0, end)
}

/** The errors by code, and the times by place. */
const countsOf = ({ errors, times }: Sums): Record<string, number> =>
  Object.fromEntries([...errors ?? [], ...times ?? []])

export const textOf = (bucket: Bucket): readonly [number, string, ReadonlyArray<number>, Record<string, number>] => [
  bucket.hour,
  nameOf(bucket),
  written(bucket.sums.values),
  countsOf(bucket.sums)
]

const sessionId = ({ key, session }: Pick<SessionUsage, "key" | "session">): string => key + separator + session

/** The buckets of a session as `usage.lua` reads them: also the name that is used once the session has too many buckets. */
export const textsOf = (usage: SessionUsage): ReadonlyArray<ReadonlyArray<unknown>> =>
  Array.from(usage.buckets.values(), ({ agent, app, hour, parent, sums }) => [
    hour,
    [hour, app, agent, parent].join(separator),
    written(sums.values),
    countsOf(sums),
    sessionId(usage),
    usage.at,
    [hour, app, none, none].join(separator)
  ])

/** The sums of a day as text. */
export const sumsText = (sums: Sums): string =>
  [...written(sums.values), ...Object.entries(countsOf(sums)).map(([name, count]) => `${name}=${count}`)].join(" ")

/** Reads the sums of a day by one dimension. */
export const readDay = (day: number, of: DimensionName, value: string, sums: string): Bucket => ({
  hour: day,
  ...dimensionsBy((name) => name === of ? value : ""),
  sums: readSums(sums)
})
