// The shared components. Markdown and Code are separate modules, because they are loaded lazily.
export { Badge, StatusBadge, type Tone } from "./badge";
export { Button, ButtonLink, IconButton, IconLink } from "./button";
export { Card, Facts, Stat } from "./card";
export { CopyButton } from "./copy";
export { Confirm, Dialog } from "./dialog";
export { Field, Input, SearchInput, Select, Switch, Textarea } from "./field";
export { Bytes, Duration, Money, Num, Time } from "./format";
export { Icon, Logo, type IconName } from "./icons";
export { JsonView } from "./json";
export { Menu, MenuItem, MenuLabel, MenuSeparator } from "./menu";
export { Page, useTitle } from "./page";
export { Empty, ErrorBox, Loaded, Skeleton } from "./states";
export { Table, type Column } from "./table";
export { Tabs, type Tab } from "./tabs";
export { useToast } from "./toast";
export { Tooltip } from "./tooltip";
export { VirtualList } from "./virtual-list";
