/**
 * The dialog that adds an upstream or changes one. What decides whether the server is reached is tested before it is saved.
 */
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as AsyncResult from "effect/reactivity/AsyncResult"
import * as Atom from "effect/reactivity/Atom"
import { useMemo, useState } from "preact/hooks"
import { driverNames, isServer } from "../../../api.ts"
import { Dialog } from "../../parts/Dialog.tsx"
import { Check, Failure, Field, Form, type ReadField, Select, TextArea, TextField } from "../../parts/Form.tsx"
import { elapsed } from "../../parts/format.ts"
import { call, reload, report } from "../../state/actions.ts"
import { Admin, type AdminClient, type Reply } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"
import { defaultUpstream } from "../../state/names.ts"
import { useTexts } from "../../state/preferences.ts"
import { useAtom } from "../../state/registry.ts"
import type { UpstreamItem } from "../../state/upstreams.ts"
import {
  changesOf,
  type Draft,
  draftOf,
  type Entry,
  limitFields,
  namesIn,
  needsTest,
  timeoutFields,
  tlsFields,
  withModel
} from "./draft.ts"

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
    () => name === undefined ? unlisted : Admin.query("admin-upstreams", "models", { params: { name } }),
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
    : <p class="notice good" role="status">{t.passed(elapsed(response_time))}</p>
}

const Fields = ({ draft, fields, kind, names }: {
  readonly kind: "numbers" | "tls"
  readonly draft: Draft
  readonly fields: ReadonlyArray<string>
  readonly names: Readonly<Record<string, string>>
}) => (
  <div class="row">
    {fields.map((field) =>
      kind === "numbers"
        ? (
          <TextField
            key={field}
            label={names[field] ?? field}
            name={field}
            inputMode="numeric"
            defaultValue={draft.numbers[field] ?? ""}
          />
        )
        : (
          <TextArea
            key={field}
            label={names[field] ?? field}
            name={`tls.${field}`}
            class="code short"
            rows={1}
            spellcheck={false}
            autocomplete="off"
            defaultValue={draft.tls[field] ?? ""}
          />
        )
    )}
  </div>
)

export const EditUpstream = ({ item, onClose }: {
  /** The upstream that is changed; absent to add one. */
  readonly item?: UpstreamItem
  readonly onClose: () => void
}) => {
  const { common, upstreams: t } = useTexts()
  const before = useMemo(() => draftOf(item?.config ?? { driver: "openai" }), [])
  const [driver, setDriver] = useState(before.driver || item?.driver || "openai")
  const [tools, setTools] = useState(before.tools)
  const [models, setModels] = useState(before.models)
  const [outcome, setOutcome] = useState<Outcome>()
  /** What the last test was about. */
  const [tested, setTested] = useState("")
  const [found, setFound] = useState<ReadonlyArray<string>>()
  const listed = useListed(item?.name)
  const names = found ?? listed

  const read = (field: ReadField): { readonly changes: Entry; readonly credential: Credential } => {
    const draft: Draft = {
      driver: driver === item?.driver ? before.driver : driver,
      base_url: field("base_url"),
      models,
      headers: field("headers"),
      proxy: field("proxy"),
      tools,
      numbers: Object.fromEntries([...limitFields, ...timeoutFields].map((name) => [name, field(name)])),
      tls: Object.fromEntries(tlsFields.map((name) => [name, field(`tls.${name}`)]))
    }
    const own = item === undefined ? { ...draftOf({}), driver: "" } : before
    return { changes: changesOf(own, draft), credential: credentialIn(field) }
  }

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
    reload(...changedBy)
    if (added !== undefined && Exit.isFailure(added)) report(t.addedWithout(name, causeText(added.cause)), true)
    else report(item === undefined ? t.added(name) : t.changed(name))
    return undefined
  }

  const submit = async (field: ReadField) => {
    const { changes, credential } = read(field)
    const subject = JSON.stringify([changes, credential])
    const onlyTests = field("action") === "test"
    const isKnown = tested === subject && outcome !== undefined && outcome.result !== "refused"
    if (onlyTests || (!isKnown && needsTest(changes))) {
      setOutcome(undefined)
      const next = await test(changes, credential)
      setOutcome(next)
      setTested(subject)
      if (onlyTests || next.result !== "passed") return
    }
    const refused = await save(item?.name ?? field("name").trim(), changes, credential)
    if (refused === undefined) onClose()
    else setOutcome({ result: "refused", text: refused })
  }

  const usesKey = isServer(driver)
  const options = drivers.filter((each) => each !== "embedded" || item?.name === defaultUpstream)
    .map((each) => [each, t.drivers(each)] as const)
  const forgetFailure = () => {
    if (outcome !== undefined && outcome.result !== "passed") setOutcome(undefined)
  }
  return (
    <Dialog name={item === undefined ? t.add : common.actionOn(t.edit, item.name)} onClose={onClose} wide>
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
                <Select label={t.driver} value={driver} options={options} onValue={setDriver} />
                <TextField
                  grow
                  label={t.address}
                  name="base_url"
                  class="code"
                  inputMode="url"
                  spellcheck={false}
                  placeholder="http://10.0.0.7:8000/v1"
                  defaultValue={before.base_url}
                />
              </div>
              {item === undefined && usesKey && (
                <Field label={t.apiKey}>
                  <input name="key" class="code" type="password" autocomplete="new-password" placeholder={t.noKey} />
                </Field>
              )}
              {item === undefined && driver === "session" && (
                <div class="row">
                  <TextField label={t.identity} name="identity" />
                  <Field label={t.password}>
                    <input name="password" type="password" autocomplete="new-password" />
                  </Field>
                </div>
              )}
              <TextArea
                label={t.models}
                name="models"
                class="code short"
                rows={Math.min(8, Math.max(3, models.split("\n").length))}
                spellcheck={false}
                placeholder={"qwen3 = Qwen/Qwen3-8B"}
                aria-describedby="upstream-models-hint"
                value={models}
                onInput={(event) => setModels(event.currentTarget.value)}
              />
              <p class="hint" id="upstream-models-hint">{t.modelsHint}</p>
              {names !== undefined && <ServerModels names={names} models={models} onModels={setModels} />}
              <details>
                <summary>{t.way}</summary>
                <div class="stack inner">
                  <TextArea
                    label={t.headers}
                    name="headers"
                    class="code short"
                    rows={2}
                    spellcheck={false}
                    autocomplete="off"
                    placeholder={"X-Title: gateway"}
                    defaultValue={before.headers}
                  />
                  <TextField
                    label={t.proxy}
                    name="proxy"
                    class="code"
                    spellcheck={false}
                    placeholder="http://proxy.example:3128"
                    defaultValue={before.proxy}
                  />
                  <p class="hint">{t.secretsHint}</p>
                  <Fields kind="tls" draft={before} fields={tlsFields} names={t.tlsFields} />
                </div>
              </details>
              <details>
                <summary>{t.limits}</summary>
                <div class="stack inner">
                  <Fields kind="numbers" draft={before} fields={limitFields} names={t.limitFields} />
                  <Fields kind="numbers" draft={before} fields={timeoutFields} names={t.timeoutFields} />
                  {usesKey && (
                    <Select
                      label={t.tools}
                      value={tools}
                      options={[["", t.byDefault], ["native", t.toolsNative], ["prompt", t.toolsPrompt]]}
                      onValue={setTools}
                    />
                  )}
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
