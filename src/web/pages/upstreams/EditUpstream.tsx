/**
 * The dialog that adds an upstream or changes one. What decides whether the server is reached is tested before it is saved.
 */
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useMemo, useState } from "preact/hooks"
import { driverNames, hasApis, isServer } from "../../../api.ts"
import { EntryField, EntryFields, nameOf, otherPaths, useEntry, WithFields } from "../../forms/Entry.tsx"
import type { Entry, FormField } from "../../forms/fields.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Check, Failure, Field, Form, type ReadField, Select, TextField } from "../../parts/Form.tsx"
import { duration } from "../../parts/format.ts"
import { call, report } from "../../state/actions.ts"
import type { AdminClient, Reply } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { defaultUpstream } from "../../state/names.ts"
import { readOf, reload } from "../../state/reads.ts"
import { useAtom } from "../../state/registry.ts"
import { useTexts } from "../../state/texts.ts"
import type { UpstreamItem } from "../../state/upstreams.ts"
import { WhoseToken } from "../accounts/WhoseToken.tsx"
import { codecs, namesIn, needsTest, withModel } from "./draft.ts"

export const changedBy = ["upstreams", "routes", "accounts", "config", "host"] as const

/** Servers before accounts that log in. */
const drivers = [...driverNames.filter((name) => name !== "session"), "session" as const]

/** The login or key that a test shows, and that becomes the first account of a new upstream. */
type Credential = Partial<Record<"key" | "email" | "mobile" | "password", string>>

type TestReply = Reply<"admin-upstreams", "test">

const credentialIn = (read: ReadField): Credential => {
  const [key, identity, password] = [read("key").trim(), read("identity").trim(), read("password")]
  return {
    ...(key === "" ? {} : { key }),
    ...(identity === "" ? {} : identity.includes("@") ? { email: identity } : { mobile: identity }),
    ...(password === "" ? {} : { password })
  }
}

const shownModels = 200

/** The models that the server lists; a checked one is served under its own name. */
const ServerModels = ({ models, names, onModels }: {
  readonly names: ReadonlyArray<string>
  readonly models: string
  readonly onModels: (models: string) => void
}) => {
  const t = useTexts().upstreams
  const [search, setSearch] = useState("")
  const served = useMemo(() => namesIn(models), [models])
  const found = names.filter((name) => name.toLowerCase().includes(search))
  return (
    <fieldset class="pick">
      <legend>{t.serverModels}</legend>
      {names.length > 12 && (
        <TextField
          label={t.searchModels}
          onInput={(event) => setSearch(event.currentTarget.value.trim().toLowerCase())}
        />
      )}
      <div class="picks" tabIndex={0} role="group" aria-label={t.serverModels}>
        {found.slice(0, shownModels).map((name) => (
          <Check
            key={name}
            label={name}
            checked={served.has(name)}
            onChange={(event) => onModels(withModel(models, name, event.currentTarget.checked))}
          />
        ))}
        {found.length === 0 && <p class="hint">{t.noModels}</p>}
      </div>
      {found.length > shownModels && <p class="hint">{t.moreModels(found.length - shownModels)}</p>}
    </fieldset>
  )
}

const unlisted = Atom.make(AsyncResult.initial<Reply<"admin-upstreams", "models">>())

/** The models of a configured upstream's server, as they were when the dialog opened; `undefined` until they are known. */
const useListed = (name: string | undefined): ReadonlyArray<string> | undefined => {
  const atom = useMemo(
    () => name === undefined ? unlisted : readOf("admin-upstreams", "models", { params: { name } }),
    [name]
  )
  const reply = Option.getOrUndefined(AsyncResult.value<Reply<"admin-upstreams", "models">, unknown>(useAtom(atom)))
  const listed = reply?.models.filter((model) => model.listed).map(({ model }) => model)
  return listed?.length === 0 ? undefined : listed
}

type Outcome =
  | { readonly result: "passed" | "failed"; readonly reply: TestReply }
  | { readonly result: "refused"; readonly text: string }

const Tested = ({ outcome }: { readonly outcome: Outcome | undefined }) => {
  const t = useTexts().upstreams
  if (outcome === undefined) return null
  if (outcome.result === "refused") return <Failure text={outcome.text} />
  const { message, response_time } = outcome.reply
  return outcome.result === "failed"
    ? <Failure text={t.failed(message)} />
    : <p class="notice good" role="status">{t.passed(duration(response_time))}</p>
}

/** What decides how the server is reached, besides its address. */
const ways = ["headers", "proxy", "tls"]

/** What an upstream that answers by keys has, and one with logins has not. */
const ofServers = [
  "bill",
  "choose",
  "credential_header",
  "errors",
  "fields",
  "forward_headers",
  "history_reasoning",
  "rate_limit_headers",
  "reserve",
  "tools",
  "whole_replies"
]

/** What an upstream has whose server may be asked by several APIs. */
const ofApis = ["api", "compaction"]

/** The cloud whose server it is, and what its address is made of there. */
const cloud = ["vendor", "region", "project", "resource"]

/** The list of upstreams switches an upstream on and off. */
const placed = ["driver", "base_url", ...cloud, "models", "enabled", ...ways, "credential_header"]

interface Editing {
  /** The upstream that is changed; absent to add one. */
  readonly item?: UpstreamItem
  readonly onClose: () => void
}

const noEntry: Entry = {}

const Editor = ({ fields, item, name, onClose }: Editing & {
  readonly fields: ReadonlyArray<FormField>
  readonly name: string
}) => {
  const { common, settings, upstreams: t } = useTexts()
  const form = useEntry(
    useMemo(() => fields.map((field) => ({ ...field, ...codecs[field.path] && { codec: codecs[field.path] } })), []),
    item === undefined ? noEntry : { driver: item.driver, ...item.config },
    item === undefined ? { start: { driver: "openai" } } : {}
  )
  const driver = form.text("driver") as UpstreamItem["driver"]
  const models = form.text("models")
  const [outcome, setOutcome] = useState<Outcome>()
  /** What the last test was about. */
  const [tested, setTested] = useState("")
  const [key, setKey] = useState("")
  const [found, setFound] = useState<ReadonlyArray<string>>()
  const listed = useListed(item?.name)
  const names = found ?? listed

  const test = async (upstream: Entry, credential: Credential): Promise<Outcome> => {
    const exit = await call((client: AdminClient) =>
      item === undefined
        ? client["admin-upstreams"].test({ payload: { upstream, ...credential } })
        : client["admin-upstreams"].testChanges({ params: { name: item.name }, payload: { upstream } })
    )
    if (Exit.isFailure(exit)) return { result: "refused", text: causeText(exit.cause) }
    const reply = exit.value
    if (reply.models !== null) setFound(reply.models)
    return { result: reply.success ? "passed" : "failed", reply }
  }

  /** Resolves to why nothing, or not everything, was saved. */
  const save = async (name: string, changes: Entry, credential: Credential): Promise<string | undefined> => {
    if (item !== undefined && Object.keys(changes).length === 0) return undefined
    const exit = await call((client: AdminClient) =>
      item === undefined
        ? client["admin-upstreams"].add({ headers: {}, payload: { name, ...changes } })
        : client["admin-upstreams"].change({ params: { name }, headers: {}, payload: changes })
    )
    if (Exit.isFailure(exit)) return causeText(exit.cause)
    const { key, ...login } = credential
    const hasAccount = Object.keys(credential).length > 0
    const account = { upstream: name, ...login, ...(key === undefined ? {} : { token: key }) }
    const added = item === undefined && hasAccount
      ? await call((client) => client["admin-accounts"].add({ payload: account }))
      : undefined
    await reload(...changedBy)
    if (added !== undefined && Exit.isFailure(added)) report(t.addedWithout(name, causeText(added.cause)), true)
    else report(item === undefined ? t.added(name) : t.changed(name))
    return undefined
  }

  const submit = async (field: ReadField) => {
    if (form.isFaulty) return setOutcome({ result: "refused", text: settings.refused })
    const changes = form.changes()
    const credential = credentialIn(field)
    const subject = JSON.stringify([changes, credential])
    const onlyTests = field("action") === "test"
    const isKnown = tested === subject && outcome !== undefined && outcome.result !== "refused"
    if (onlyTests || (!isKnown && needsTest(changes))) {
      setOutcome(undefined)
      const next = await test(changes, credential)
      setOutcome(next)
      setTested(subject)
      if (onlyTests || next.result !== "passed") return undefined
    }
    const refused = await save(item?.name ?? field("name").trim(), changes, credential)
    return refused === undefined ? onClose() : setOutcome({ result: "refused", text: refused })
  }

  const usesKey = isServer(driver)
  const shown = { form, names: t.fields }
  const isShown = (path: string) =>
    (usesKey || !ofServers.includes(path)) && (hasApis(driver) || !ofApis.includes(path))
  const within = (group: string) => fields.map(({ path }) => path).filter((path) => path.split(".")[0] === group)
  const options = drivers.filter((each) => each !== "embedded" || item?.name === defaultUpstream)
    .map((each) => [each, t.drivers(each)] as const)
  const forgetFailure = () => {
    if (outcome !== undefined && outcome.result !== "passed") setOutcome(undefined)
  }
  return (
    <Dialog name={name} onClose={onClose} wide>
      <Form onSubmit={submit}>
        {(busy) => (
          <>
            <div class="stack" onInput={forgetFailure}>
              <div class="row">
                {item === undefined && (
                  <TextField
                    label={t.name}
                    name="name"
                    class="code"
                    spellcheck={false}
                    placeholder="gpu"
                    maxLength={32}
                  />
                )}
                <Select
                  label={nameOf(t.fields, "driver")}
                  value={driver}
                  options={options}
                  onValue={(value) => form.set("driver", value)}
                />
                <EntryField {...shown} grow path="base_url" class="code" placeholder="http://10.0.0.7:8000/v1" />
              </div>
              {usesKey && (
                <EntryFields
                  {...shown}
                  paths={cloud.slice(0, cloud.some((path) => form.text(path) !== "") ? cloud.length : 1)}
                />
              )}
              {item === undefined && usesKey && (
                <>
                  <Field label={t.apiKey}>
                    <input
                      name="key"
                      class="code"
                      type="password"
                      autocomplete="new-password"
                      placeholder={t.noKey}
                      onInput={(event) => setKey(event.currentTarget.value)}
                    />
                  </Field>
                  <WhoseToken given={key} />
                </>
              )}
              {item === undefined && driver === "session" && (
                <div class="row">
                  <TextField label={t.identity} name="identity" />
                  <Field label={t.password}>
                    <input name="password" type="password" autocomplete="new-password" />
                  </Field>
                </div>
              )}
              <EntryField
                {...shown}
                path="models"
                rows={Math.min(8, Math.max(3, models.split("\n").length))}
                placeholder="qwen3 = Qwen/Qwen3-8B"
              />
              <p class="hint">{t.modelsHint}</p>
              {names !== undefined && (
                <ServerModels
                  names={names}
                  models={models}
                  onModels={(text) => form.set("models", text)}
                />
              )}
              <details>
                <summary>{t.way}</summary>
                <div class="stack inner">
                  <EntryField {...shown} path="headers" rows={2} placeholder="X-Title: gateway" />
                  <EntryField {...shown} path="proxy" class="code" placeholder="http://proxy.example:3128" />
                  <p class="hint">{t.secretsHint}</p>
                  <EntryFields {...shown} paths={within("tls")} />
                  {usesKey && <EntryField {...shown} path="credential_header" class="code" />}
                </div>
              </details>
              <details>
                <summary>{t.limits}</summary>
                <div class="stack inner">
                  <EntryFields {...shown} paths={within("timeouts")} />
                  <EntryFields {...shown} paths={otherPaths(fields, [...placed, "timeouts"]).filter(isShown)} />
                </div>
              </details>
            </div>
            <Tested outcome={outcome} />
            <div class="actions end">
              <button type="button" onClick={onClose}>{common.cancel}</button>
              <button type="submit" name="action" value="test" disabled={busy}>{t.test}</button>
              <button type="submit" name="action" value="save" class="primary" disabled={busy}>
                {outcome?.result === "failed" ? t.saveAnyway : t.save}
              </button>
            </div>
          </>
        )}
      </Form>
    </Dialog>
  )
}

export const EditUpstream = (editing: Editing) => {
  const { common, upstreams: t } = useTexts()
  const name = editing.item === undefined ? t.add : common.actionOn(t.edit, editing.item.name)
  return (
    <WithFields of="upstreams" name={name} onClose={editing.onClose}>
      {(fields) => <Editor {...editing} fields={fields} name={name} />}
    </WithFields>
  )
}
