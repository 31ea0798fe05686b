/**
 * The page of an upstream: its state and what can be done with it, what it did in the last 24 hours, and what it serves.
 */
import { useState } from "preact/hooks"
import { useFields } from "../../forms/Entry.tsx"
import { Card } from "../../parts/Card.tsx"
import { ChangeButton } from "../../parts/configuration.tsx"
import { CurrentWindows } from "../../parts/CurrentWindows.tsx"
import { Facts } from "../../parts/Facts.tsx"
import { PressButton } from "../../parts/Form.tsx"
import { duration, minuteOfDay, number } from "../../parts/format.ts"
import { Heading } from "../../parts/Heading.tsx"
import { Loaded } from "../../parts/Loaded.tsx"
import { RowMenu } from "../../parts/Menu.tsx"
import { UpstreamBadge } from "../../parts/UpstreamBadge.tsx"
import { accountName, defaultUpstream } from "../../state/names.ts"
import { useValue } from "../../state/registry.ts"
import { linkTo } from "../../state/route.ts"
import { useTexts } from "../../state/texts.ts"
import { routesAtom, type UpstreamItem, upstreamsAtom, useCurrentUpstreams } from "../../state/upstreams.ts"
import { Day, LastFailures, Touched } from "../nouns/Day.tsx"
import { Gone, Last } from "../nouns/Gone.tsx"
import { partsOf, targetText } from "../routes/choice.ts"
import { DeleteUpstream } from "./DeleteUpstream.tsx"
import { EditUpstream } from "./EditUpstream.tsx"
import { Accounts, useUpstreamActions } from "./UpstreamParts.tsx"

/** The most models and routes that are named. */
const mostNamed = 50

/** The routes that name an upstream. */
const useRoutes = (name: string): ReadonlyArray<string> =>
  Object.entries(useValue(routesAtom)?.routes ?? {}).flatMap(([route, { targets }]) =>
    targets.some((target) => partsOf(targetText(target), route).upstream === name) ? [route] : []
  )

const Names = ({ linkOf, names }: {
  readonly names: ReadonlyArray<string>
  readonly linkOf: (name: string) => string
}) => {
  const t = useTexts().common
  return (
    <span class="summary">
      {names.slice(0, mostNamed).map((name) => <a key={name} href={linkOf(name)}>{name}</a>)}
      {names.length > mostNamed && <span class="hint">{t.andMore(names.length - mostNamed)}</span>}
    </span>
  )
}

/** What the server has refused, and what the gateway does about it until when. */
const Refused = ({ of }: { readonly of: UpstreamItem["refusals"] }) => {
  const t = useTexts().keys
  return (
    <ul class="listed">
      {of.map(({ effect, model, until, words }) => (
        <li key={`${model} ${effect}`}>
          {`${model}: ${effect}`}
          <p class="hint">{`“${words}” · ${t.until(minuteOfDay(Date.parse(until)))}`}</p>
        </li>
      ))}
    </ul>
  )
}

const Upstream = ({ isGone, item }: { readonly item: UpstreamItem; readonly isGone: boolean }) => {
  const { common, upstreams: t } = useTexts()
  const [open, setOpen] = useState<"edit" | "delete">()
  const { busy, isTesting, test, toggle } = useUpstreamActions(item)
  const routes = useRoutes(item.name)
  const { base_url, driver, enabled, in_use, last_5m, max_inflight, models, name, proxy, waiting } = item
  const close = () => setOpen(undefined)
  const page = () => (
    <>
      <Heading name={name}>
        <PressButton disabled={isTesting} onClick={test}>{t.test}</PressButton>
        <ChangeButton onClick={() => setOpen("edit")}>{t.edit}</ChangeButton>
        <RowMenu
          of={name}
          items={[
            { id: "toggle", text: enabled ? t.disable : t.enable, disabled: busy, onClick: toggle },
            {
              id: "delete",
              text: t.delete,
              danger: true,
              apart: true,
              disabled: name === defaultUpstream,
              onClick: () => setOpen("delete")
            }
          ]}
        />
      </Heading>
      <Card>
        <Facts
          facts={[
            [t.state, <UpstreamBadge key="state" item={item} />],
            [t.upstream, [t.drivers(driver), base_url].filter((each) => each !== "").join(" · ")],
            [t.budgets, item.budgets.length === 0 ? undefined : <CurrentWindows key="windows" of={item} />],
            [
              t.slots,
              [
                common.of(number(in_use), number(max_inflight)),
                ...waiting > 0 ? [t.waiting(number(waiting))] : []
              ].join(", ")
            ],
            [t.accounts, <Accounts key="accounts" item={item} />],
            [
              t.errors,
              last_5m.requests === 0 ? "–" : `${number(last_5m.errors)} ${t.ofTries(number(last_5m.requests))}`
            ],
            [
              t.speed,
              last_5m.p50_ms === null
                ? "–"
                : [duration(last_5m.p50_ms), ...last_5m.p95_ms === null ? [] : [t.p95(duration(last_5m.p95_ms))]].join(
                  " · "
                )
            ],
            [t.refused, item.refusals.length === 0 ? undefined : <Refused key="refused" of={item.refusals} />],
            [t.proxy, proxy ?? undefined],
            [
              common.pages.models,
              models.length === 0 ? undefined : (
                <Names
                  key="models"
                  names={models}
                  linkOf={(model) => linkTo("models", model)}
                />
              )
            ],
            [
              common.pages.routes,
              routes.length === 0
                ? undefined
                : <Names key="routes" names={routes} linkOf={(route) => linkTo("routes", undefined, { q: route })} />
            ]
          ]}
        />
      </Card>
      <Day of={{ upstream: name }} requests={{ upstream: name }} />
      <div class="halves">
        <Touched of={{ upstream: name }} by="key" name={t.key} linkOf={({ value }) => linkTo("keys", value)} />
        <Touched
          of={{ upstream: name }}
          by="account"
          name={t.account}
          linkOf={({ text }) => linkTo("accounts", accountName({ upstream: name, identifier: text }))}
        />
      </div>
      <LastFailures requests={{ upstream: name }} />
    </>
  )
  return (
    <>
      {isGone ? <Gone page="upstreams" /> : page()}
      {open === "edit" && <EditUpstream item={item} onClose={close} />}
      {open === "delete" && <DeleteUpstream item={item} onClose={close} />}
    </>
  )
}

export const UpstreamPage = ({ name }: { readonly name: string }) => {
  useCurrentUpstreams()
  // So that a dialog opens immediately.
  useFields("upstreams")
  return (
    <Loaded atom={upstreamsAtom} rows={8}>
      {({ upstreams }) => (
        <Last item={upstreams.find((each) => each.name === name)} page="upstreams">
          {(item, isGone) => <Upstream item={item} isGone={isGone} />}
        </Last>
      )}
    </Loaded>
  )
}
