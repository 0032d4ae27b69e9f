// The components of cards: A2UI's basic catalogue, with replacements where the originals would load
// remote content, need a missing font, or insert HTML.
import {
  Card,
  CheckBox,
  ChoicePicker,
  Column,
  createComponentImplementation,
  DateTimeInput,
  Divider,
  List,
  Modal,
  Row,
  Slider,
  Tabs,
  TextField,
  type ReactComponentImplementation,
} from "@a2ui/react/v0_9";
import { Catalog } from "@a2ui/web_core/v0_9";
import { AudioPlayerApi, BASIC_FUNCTIONS, ButtonApi, IconApi, ImageApi, TextApi, VideoApi } from "@a2ui/web_core/v0_9/basic_catalog";
import type { ElementType } from "react";
import { useT } from "@/i18n";
import { Icon, type IconName } from "@/ui";
import { linkTarget } from "@/ui/links";
import Markdown from "@/ui/markdown";
import styles from "./cards.module.css";

/** The same components under several names. */
const IDS = [
  "https://a2ui.org/specification/v0_9/basic_catalog.json",
  "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json",
];

const icons: Record<string, IconName> = {
  accountCircle: "user",
  add: "plus",
  arrowForward: "arrowRight",
  attachFile: "paperclip",
  calendarToday: "clock",
  check: "check",
  close: "close",
  delete: "trash",
  download: "download",
  edit: "edit",
  event: "calendar",
  error: "error",
  info: "info",
  lock: "key",
  locationOn: "pin",
  mail: "mail",
  menu: "menu",
  person: "user",
  phone: "phone",
  call: "phone",
  photo: "image",
  refresh: "refresh",
  search: "search",
  upload: "upload",
  warning: "warning",
};

/** All headings of a card have one level below the page's: a card chooses their size, not their level. */
const tags: Record<string, ElementType> = { h1: "h2", h2: "h2", h3: "h2", h4: "h2", h5: "h2", caption: "p" };

const SafeText = createComponentImplementation(TextApi, ({ props }) => {
  const text = typeof props.text === "string" ? props.text : String(props.text ?? "");
  const variant = props.variant ?? "body";
  const Tag = tags[variant];
  if (!text) return null;
  if (Tag) return <Tag className={styles[variant]}>{text}</Tag>;
  return <Markdown text={text} />;
});

const SafeIcon = createComponentImplementation(IconApi, ({ props }) => {
  const name = typeof props.name === "string" ? icons[props.name] : undefined;
  return name ? <span className={styles["icon"]}><Icon name={name} size={18} /></span> : null;
});

const ActionButton = createComponentImplementation(ButtonApi, ({ props, buildChild }) => (
  <button
    type="button"
    className={`${styles["button"]} ${props.variant === "primary" ? styles["primary"] : ""}`}
    disabled={props.isValid === false}
    onClick={() => (props.action as (() => void) | undefined)?.()}
  >
    {props.child ? buildChild(props.child as string) : null}
  </button>
));

/** Media of a card are never loaded: they become links. */
function MediaLink({ url, words, icon }: { url: unknown; words?: unknown; icon: IconName }) {
  const t = useT();
  const target = linkTarget(typeof url === "string" ? url : undefined, window.location.origin);
  const label = typeof words === "string" && words ? words : (target?.host ?? "");
  return (
    <span className={styles["media"]}>
      <Icon name={icon} size={16} />
      {target ? (
        <a href={target.href} target="_blank" rel="noopener noreferrer nofollow" title={t("chat.cardMedia", { host: target.host })}>
          {label}
        </a>
      ) : (
        label
      )}
    </span>
  );
}

const SafeImage = createComponentImplementation(ImageApi, ({ props }) => <MediaLink url={props.url} words={props.description} icon="image" />);
const SafeVideo = createComponentImplementation(VideoApi, ({ props }) => <MediaLink url={props.url} icon="play" />);
const SafeAudio = createComponentImplementation(AudioPlayerApi, ({ props }) => <MediaLink url={props.url} words={props.description} icon="play" />);

const components: ReactComponentImplementation[] = [
  Card, CheckBox, ChoicePicker, Column, DateTimeInput, Divider, List, Modal, Row, Slider, Tabs, TextField,
  SafeText, SafeIcon, ActionButton, SafeImage, SafeVideo, SafeAudio,
];

export const catalogues = IDS.map((id) => new Catalog<ReactComponentImplementation>(id, components, BASIC_FUNCTIONS));
