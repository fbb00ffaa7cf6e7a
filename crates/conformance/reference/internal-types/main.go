// Writes the table of kube-apiserver's internal types, which its messages show: `go run ./internal-types > internal-types.json`
// in this module, and the file goes to crates/apiserver/recorded.
//
// A type is a list of its fields: the name by which Go writes it, where the value is in the API's JSON, and what it is. `*` is a
// pointer, `[]` a list, `{}` a map, `=` what writes itself as it stands in the API; a fourth member says that it is left out when empty.
// A place with a slash is a member of a member; one that begins with `../` is beside the object.
package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sort"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/flowcontrol"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
)

var (
	marshaler = reflect.TypeFor[json.Marshaler]()
	table     = map[string][]any{}
)

// tagged is what encoding/json makes of a field.
func tagged(field reflect.StructField) (name string, omitted, inline bool) {
	tag, has := field.Tag.Lookup("json")
	name, options, _ := strings.Cut(tag, ",")
	omitted = strings.Contains(options, "omit")
	inline = strings.Contains(options, "inline") || field.Anonymous && (!has || name == "")
	if name == "" {
		name = field.Name
	}
	return name, omitted, inline
}

// places are the fields of an API type by their Go names.
func places(of reflect.Type) map[string]reflect.StructField {
	found := map[string]reflect.StructField{}
	for at := range of.NumField() {
		field := of.Field(at)
		name, _, inline := tagged(field)
		if inline {
			for own, field := range places(field.Type) {
				found[own] = field
			}
			continue
		}
		if field.Type == reflect.TypeFor[metav1.ObjectMeta]() {
			for own, inner := range places(field.Type) {
				inner.Tag = reflect.StructTag(name + "/" + string(inner.Tag))
				found[own] = inner
			}
		}
		field.Tag = reflect.StructTag(name)
		found[field.Name] = field
	}
	return found
}

func name(of reflect.Type) string {
	parts := strings.Split(of.PkgPath(), "/")
	return parts[len(parts)-1] + "." + of.Name()
}

func element(of reflect.Type) reflect.Type {
	switch of.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return of.Elem()
	}
	return of
}

func describe(internal, external reflect.Type) string {
	if internal.Kind() == reflect.Pointer {
		return "*" + describe(internal.Elem(), element(external))
	}
	if external.Kind() == reflect.Pointer {
		external = external.Elem()
	}
	if reflect.PointerTo(internal).Implements(marshaler) {
		return "=" + name(internal)
	}
	switch internal.Kind() {
	case reflect.Slice:
		if internal.Elem().Kind() == reflect.Uint8 {
			return "=bytes"
		}
		return "[]" + describe(internal.Elem(), element(external))
	case reflect.Map:
		return "{}" + describe(internal.Elem(), element(external))
	case reflect.Struct:
		object(internal, external)
		return name(internal)
	case reflect.String, reflect.Bool:
		return internal.Kind().String()
	case reflect.Interface:
		return "any"
	}
	return "number"
}

func object(internal, external reflect.Type) {
	if _, known := table[name(internal)]; known {
		return
	}
	table[name(internal)] = []any{}
	twins := map[string]reflect.StructField{}
	if external.Kind() == reflect.Struct {
		twins = places(external)
	}
	fields := []any{}
	var add func(reflect.Type)
	add = func(of reflect.Type) {
		for at := range of.NumField() {
			field := of.Field(at)
			written, omitted, inline := tagged(field)
			if inline {
				add(field.Type)
				continue
			}
			place, twin := "../"+strings.ToLower(field.Name[:1])+field.Name[1:], field.Type
			if own, has := twins[field.Name]; has {
				place, twin = string(own.Tag), own.Type
			}
			described := []any{written, place, describe(field.Type, twin)}
			if omitted {
				described = append(described, "omitempty")
			}
			fields = append(fields, described)
		}
	}
	add(internal)
	table[name(internal)] = fields
}

func main() {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[core.PodSpec](), reflect.TypeFor[corev1.PodSpec]()},
		{reflect.TypeFor[core.PodTemplateSpec](), reflect.TypeFor[corev1.PodTemplateSpec]()},
		{reflect.TypeFor[core.PersistentVolumeClaimSpec](), reflect.TypeFor[corev1.PersistentVolumeClaimSpec]()},
		{reflect.TypeFor[core.PersistentVolumeSource](), reflect.TypeFor[corev1.PersistentVolumeSource]()},
		{reflect.TypeFor[core.EventSource](), reflect.TypeFor[corev1.EventSource]()},
		{reflect.TypeFor[storage.VolumeAttachmentSpec](), reflect.TypeFor[storagev1.VolumeAttachmentSpec]()},
		{reflect.TypeFor[core.VolumeNodeAffinity](), reflect.TypeFor[corev1.VolumeNodeAffinity]()},
		{reflect.TypeFor[batch.PodFailurePolicy](), reflect.TypeFor[batchv1.PodFailurePolicy]()},
		{reflect.TypeFor[batch.SuccessPolicy](), reflect.TypeFor[batchv1.SuccessPolicy]()},
		{reflect.TypeFor[flowcontrol.FlowSchemaSpec](), reflect.TypeFor[flowcontrolv1.FlowSchemaSpec]()},
		{reflect.TypeFor[flowcontrol.PriorityLevelConfigurationSpec](), reflect.TypeFor[flowcontrolv1.PriorityLevelConfigurationSpec]()},
		{reflect.TypeFor[networking.ParentReference](), reflect.TypeFor[networkingv1.ParentReference]()},
		{reflect.TypeFor[apiextensions.CustomResourceDefinitionVersion](), reflect.TypeFor[apiextensionsv1.CustomResourceDefinitionVersion]()},
		{reflect.TypeFor[admissionregistration.AuditAnnotation](), reflect.TypeFor[admissionregistrationv1.AuditAnnotation]()},
		{reflect.TypeFor[resource.ResourceClaimSpec](), reflect.TypeFor[resourcev1.ResourceClaimSpec]()},
		{reflect.TypeFor[resource.AllocationResult](), reflect.TypeFor[resourcev1.AllocationResult]()},
		{reflect.TypeFor[resource.DeviceAttribute](), reflect.TypeFor[resourcev1.DeviceAttribute]()},
		{reflect.TypeFor[resource.ResourceClaimTemplateSpec](), reflect.TypeFor[resourcev1.ResourceClaimTemplateSpec]()},
	} {
		describe(pair[0], pair[1])
	}
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	sort.Strings(names)
	for at, name := range names {
		begin, fields := ",\n", must(json.Marshal(table[name]))
		if at == 0 {
			begin = "{\n"
		}
		fmt.Printf("%s%q:%s", begin, name, fields)
	}
	fmt.Println("\n}")
}

func must(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}
